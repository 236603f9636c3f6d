"""What session runner and ledger add to the SDK's own cost, and how fast stored answers are.

Run with ``python benchmarks/runner.py``; it needs the openai package. The server is a process of
its own on the loopback and answers at once. CPU time is that of this process, all threads. ``python
benchmarks/runner.py cost`` leaves out stored answers; ``python benchmarks/runner.py memory`` tells
the peak memory of a process that lives a run of 1,000 sessions.
"""

import asyncio
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from side_by_side import goal

from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters import Reply, Sampling, Usage
from knownminds.llm_adapters.providers.openai import OpenAI
from knownminds.llm_adapters.runs.ledger import Ledger, Spent, asked_of, request_of
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import read_run, run_sessions_in

SESSIONS = 64
LARGE = 1000  # sessions of the run whose memory is told
ROUNDS = 5
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})


class Instant(asyncio.Protocol):
    """Speaks just enough HTTP to answer a chat completion with the last capital letter in it."""

    def connection_made(self, transport):
        self.transport, self.held = transport, b""

    def data_received(self, data):
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            length = int(re.search(rb"content-length: (\d+)", self.held, re.IGNORECASE)[1])
            if len(self.held) < end + 4 + length:
                return
            body = self.held[end + 4 : end + 4 + length]
            self.held = self.held[end + 4 + length :]
            letter = re.findall(rb"machine ([A-Z])\b", body)[-1]
            reply = (
                b'{"id":"x","object":"chat.completion","created":0,"model":"m","choices":[{"index":'
                b'0,"finish_reason":"stop","message":{"role":"assistant","content":"%s"}}],"usage":'
                b'{"prompt_tokens":%d,"completion_tokens":1,"total_tokens":%d}}'
                % (letter, length // 4, length // 4 + 1)
            )
            head = (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            )
            self.transport.write(head % len(reply) + reply)


async def serve():
    server = await asyncio.get_running_loop().create_server(Instant, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def timed(work):
    """Return seconds and CPU seconds of a coroutine, run to its end."""
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(work)
    return time.perf_counter() - wall, time.process_time() - cpu


async def each_session(adapter, prompts, ask):
    """Ask the prompts of all sessions at the same time, those of one session in turn."""

    async def session(i):
        for prompt in prompts[i]:
            await ask(prompt, i)

    try:
        await asyncio.gather(*(session(i) for i in range(SESSIONS)))
    finally:
        await adapter.close()


async def sdk_alone(url, prompts):
    adapter = OpenAI("m", base_url=url, key_variable=None)

    async def ask(prompt, i):
        messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
        await adapter._client.chat.completions.with_raw_response.create(
            model="m", messages=messages, seed=i
        )

    await each_session(adapter, prompts, ask)


async def adapter_alone(url, prompts):
    adapter = OpenAI("m", base_url=url, key_variable=None)

    async def ask(prompt, i):
        await adapter.complete(prompt, settings=Sampling(seed=i))

    await each_session(adapter, prompts, ask)


class Listening:
    """An adapter that keeps the prompts it is asked."""

    def __init__(self, adapter):
        self.adapter = adapter
        self.model, self.provider, self.base_url = adapter.model, adapter.provider, ""
        self.capabilities = adapter.capabilities
        self.prompts = {i: [] for i in range(SESSIONS)}

    async def complete(self, prompt, *, settings):
        self.prompts[settings.seed].append(prompt)
        return await self.adapter.complete(prompt, settings=settings)


async def a_run(url, folder, environment, listening=False):
    adapter = OpenAI("m", base_url=url, key_variable=None)
    asked = Listening(adapter) if listening else adapter
    try:
        await run_sessions_in(
            folder, asked, environment, SESSIONS, 1, concurrency=SESSIONS, price=PRICE
        )
    finally:
        await adapter.close()
    return asked


def against_the_sdk(url, folder):
    environment = InstrumentalLearning(n_visits=6)
    calls = SESSIONS * environment.n_trials
    heard = asyncio.run(a_run(url, folder / "heard", environment, listening=True)).prompts
    ways = {
        "SDK alone": lambda k: sdk_alone(url, heard),
        "SDK and adapter": lambda k: adapter_alone(url, heard),
        "session runner, ledger, environment, adapter and SDK": lambda k: a_run(
            url, folder / f"run{k}", environment
        ),
    }
    seconds = {name: [] for name in ways}
    for k in range(ROUNDS):
        for name, way in ways.items():
            seconds[name].append(timed(way(k)))
    print(f"\n{SESSIONS} sessions of {environment.n_trials} trials at once, per call")
    for name, found in seconds.items():
        wall, cpu = (median(part) / calls * 1e3 for part in zip(*found, strict=True))
        print(f"  {name:<58}{cpu:8.2f} ms of CPU {wall:8.2f} ms")
    sdk, adapter, whole = ([cpu for _, cpu in found] for found in seconds.values())
    added = [(w - a) / s for s, a, w in zip(sdk, adapter, whole, strict=True)]
    print(f"  rounds: {', '.join(f'{x:.2f}' for x in added)}")
    goal("CPU that runner and ledger add, in units of the SDK's", median(added), 0.6, at_most=True)


def ledger_alone(folder):
    """Both transactions of a call, at 64 sessions: reserved before, answered after."""
    environment = InstrumentalLearning(n_visits=6)
    observation, _ = environment.reset(seed=1)
    prompt = environment.render(observation, [])
    reply = Reply("A", usage=Usage(500, 1), model_served="m", raw="x" * 500, request_id="r")
    turns = 40

    async def write(ledger):
        async def session(i):
            for turn in range(turns):
                who = {"provider": "p", "model": f"{i}.{turn}", "base_url": ""}
                request = request_of(asked_of(who, Sampling()), prompt)
                call, attempt = await ledger.begin((i, turn, 0), None, request, Spent(1, 999, 9))
                await ledger.answered(call, attempt, reply, Spent(1, 501, 5))
                ledger.judged(call, "ok", "")

        await asyncio.gather(*(session(i) for i in range(SESSIONS)))

    rates = []
    for k in range(ROUNDS):
        with Ledger.open(folder / f"ledger{k}", {"seed": k}, SESSIONS, price=PRICE) as ledger:
            wall, cpu = timed(write(ledger))
        rates.append(SESSIONS * turns / wall)
    cpu = cpu / (SESSIONS * turns) * 1e6
    print(
        f"\nledger alone, {SESSIONS} sessions, each commit on the disk: {cpu:.0f} us CPU per call"
    )
    print(f"  rounds: {', '.join(f'{rate:.0f}' for rate in rates)} calls per second")
    goal("calls per second, two transactions each", median(rates), 9000)
    goal("calls per second of CPU", 1e6 / cpu, 9000)


def against_collecting(url, folder):
    for visits in (6, 24):
        environment = InstrumentalLearning(n_visits=visits)
        calls, ratios, shares = SESSIONS * environment.n_trials, [], []
        for k in range(2 if visits > 6 else ROUNDS):
            place = folder / f"collected{visits}.{k}"
            collected, _ = timed(a_run(url, place, environment))
            resumed, _ = timed(a_run(url, place, environment))
            begin = time.perf_counter()
            read_run(place)
            read = time.perf_counter() - begin
            ratios.append(collected / resumed)
            shares.append((collected / calls, resumed / calls, read / calls))
        told = [median(part) * 1e3 for part in zip(*shares, strict=True)]
        print(
            f"\n{SESSIONS} sessions of {environment.n_trials} trials, per call: collected in "
            f"{told[0]:.2f} ms, resumed in {told[1]:.2f} ms, read in {told[2]:.2f} ms"
        )
        print(f"  rounds: {', '.join(f'{ratio:.1f}' for ratio in ratios)}")
        goal("stored answers, times faster than collecting them", median(ratios), 10)


async def large_run(url, folder):
    """Live a run of a thousand sessions, at most 64 at a time, and tell the peak memory."""
    adapter = OpenAI("m", base_url=url, key_variable=None)
    environment = InstrumentalLearning(n_visits=6)
    try:
        run = await run_sessions_in(
            folder, adapter, environment, LARGE, 1, concurrency=SESSIONS, price=PRICE
        )
    finally:
        await adapter.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux tells kB
    print(f"\n{LARGE} sessions of {environment.n_trials} trials, {run.calls} calls")
    goal("GB at most in the process of the run", peak, 1.5, at_most=True)


def main(what):
    server = subprocess.Popen(
        [sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True
    )
    try:
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        with TemporaryDirectory() as folder:
            if what == ["memory"]:
                asyncio.run(large_run(url, Path(folder) / "large"))
                return
            ledger_alone(Path(folder))
            against_the_sdk(url, Path(folder))
            if what != ["cost"]:
                against_collecting(url, Path(folder))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        main(sys.argv[1:])
