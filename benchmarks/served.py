"""Memory of a served mind over 5,000 calls; `python benchmarks/served.py`.

The server is a process of its own, asked on eight connections for the trials of 209 sessions: a
third of the calls in streams, a third as responses, and each 50th refused. Memory is what the
process holds (VmRSS), on Linux.
"""

import asyncio
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

from side_by_side import goal

CALLS = 5_000
EVERY = 1_000
LINES = 8
TRIALS = 24
SERVE = "from knownminds.validation.cli import main; main()"
WORDS = ("serve", "instrumental_learning", "--trials", f"{TRIALS}", "--seed", "3")


def prompts(i):
    """What an agent that always takes the first machine is asked in session i."""
    from knownminds.environments import InstrumentalLearning, Turn, session_stream
    from knownminds.llm_adapters.runs.participant import RUN

    environment = InstrumentalLearning(n_visits=6)
    design = environment.draw(session_stream(3, *RUN, i))
    seen, _ = environment.reset(options={"design": design})
    turns = []
    while seen is not None:
        yield environment.render(seen, turns)
        following, reward, *_ = environment.step(0)
        turns.append(Turn(seen, 0, reward, environment.say(0, seen)))
        seen = following


def request(prompt, i, k):
    """Return the k-th request, of session i, in one of the ways that there are."""
    messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
    content = {"model": "known-mind" if k % 50 else "another"}
    if k % 3 == 2:
        content |= {"input": messages}
    else:
        content |= {"messages": messages, "seed": i, "stream": k % 3 == 1}
    body = json.dumps(content).encode()
    path = "responses" if k % 3 == 2 else "chat/completions"
    head = f"POST /v1/{path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def ask(port, requests):
    """Send requests one after the other and wait for each answer; return how many were 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    good = 0
    for one in requests:
        writer.write(one)
        head = await reader.readuntil(b"\r\n\r\n")
        good += head.startswith(b"HTTP/1.1 200")
        length = re.search(rb"content-length: (\d+)", head)
        if length:
            await reader.readexactly(int(length[1]))
        else:
            await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return good


def resident(pid):
    """Memory that a process holds, in MB."""
    told = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", told)[1]) / 1024


def main():
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, *WORDS], stderr=subprocess.PIPE, text=True
    )
    port = int(re.search(r":(\d+)/v1", server.stderr.readline())[1])
    sessions = -(-CALLS // TRIALS)
    asked = [(prompt, i) for i in range(sessions) for prompt in prompts(i)]
    requests = [request(*asked[k], k) for k in range(CALLS)]

    async def stretch(some):
        return sum(await asyncio.gather(*(ask(port, some[line::LINES]) for line in range(LINES))))

    held, good = [], 0
    for begin in range(0, CALLS, EVERY):
        good += asyncio.run(stretch(requests[begin : begin + EVERY]))
        held.append(resident(server.pid))
        print(f"after {begin + EVERY:>5} calls: {held[-1]:.1f} MB")
    server.send_signal(signal.SIGINT)
    _, told = server.communicate(timeout=20)
    print(f"with status 200: {good}; {told.strip()}")
    goal("MB that the last 4,000 calls added", held[-1] - held[0], 2, at_most=True)


if __name__ == "__main__":
    main()
