"""What runner and ledger add to the cost of a plain HTTP client, and what a kill loses.

``python speed/runner.py`` tells CPU per call and the ledger's speed; ``... memory`` the peak memory
of a run of 1,000 sessions; ``... kills`` which calls are repeated after a hundred ``kill -9``. Its
server is on the loopback and answers at once, or after half a second. CPU time is that of this
process.
"""

import asyncio
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import httpx2
from side_by_side import goal

from knownminds.environments import InstrumentalLearning, Session, session_stream
from knownminds.llm_adapters import InProcess, Reply, Sampling, Usage, load
from knownminds.llm_adapters.runs.ledger import Attempt, Ledger, asked_of, request_hash
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import RunOptions, run_sessions_in

SESSIONS = 64
LARGE = 1000  # sessions of the run whose memory is measured
ROUNDS = 5
KILLS, AT_ONCE, SLOW = 100, 16, 0.5  # and seconds until an answer comes
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})


class Server(asyncio.Protocol):
    """Speaks just enough HTTP to answer a chat completion with the last capital letter in it."""

    def __init__(self, seconds=0.0, answered=None):
        self.seconds, self.answered, self.held = seconds, answered, b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            length = int(re.search(rb"content-length: (\d+)", self.held, re.IGNORECASE)[1])
            if len(self.held) < end + 4 + length:
                return
            body = self.held[end + 4 : end + 4 + length]
            self.held = self.held[end + 4 + length :]
            if self.answered is None:
                self.answer(body)
            else:
                self.answered.append([body, None])
                loop = asyncio.get_running_loop()
                loop.call_later(self.seconds, self.answer, body, self.answered[-1])

    def answer(self, body, note=None):
        if self.transport.is_closing():
            return
        letter = re.findall(rb"machine ([A-Z])\b", body)[-1]
        reply = (
            b'{"id":"x","object":"chat.completion","created":0,"model":"m","choices":[{"index":'
            b'0,"finish_reason":"stop","message":{"role":"assistant","content":"%s"}}],"usage":'
            b'{"prompt_tokens":%d,"completion_tokens":1,"total_tokens":%d}}'
            % (letter, len(body) // 4, len(body) // 4 + 1)
        )
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self.transport.write(head % len(reply) + reply)
        if note is not None:
            note[1] = time.monotonic()


async def serve(announce, **options):
    made = await asyncio.get_running_loop().create_server(lambda: Server(**options), "127.0.0.1", 0)
    announce(made.sockets[0].getsockname()[1])
    await made.serve_forever()


def timed(work):
    """Return seconds and CPU seconds of a coroutine, run to its end."""
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(work)
    return time.perf_counter() - wall, time.process_time() - cpu


async def each_session(requests, ask):
    """Ask the requests of all sessions at the same time, those of one session in turn."""

    async def session(i):
        for request in requests[i]:
            await ask(request)

    await asyncio.gather(*(session(i) for i in range(SESSIONS)))


async def client_alone(url, requests):
    limits = httpx2.Limits(max_connections=1000)
    async with httpx2.AsyncClient(trust_env=False, limits=limits, timeout=120.0) as client:

        async def ask(request):
            (await client.post(f"{url}/chat/completions", json=request)).json()

        await each_session(requests, ask)


async def adapter_alone(url, requests):
    adapter = load("openai")("m", base_url=url, key_variable=None)

    async def ask(request):
        adapter.read(await adapter.send(request), Sampling())

    await each_session(requests, ask)
    await adapter.close()


class Listening(InProcess):
    """An adapter that keeps its requests, by session."""

    def __init__(self, adapter):
        self.adapter = adapter
        self.model, self.provider, self.heeds = adapter.model, adapter.provider, adapter.heeds
        self.requests = {i: [] for i in range(SESSIONS)}

    async def complete(self, prompt, *, settings):
        self.requests[settings.seed].append(self.adapter.request(prompt, settings))
        return await self.adapter.complete(prompt, settings=settings)


async def a_run(url, folder, environment, listening=False, n=SESSIONS, concurrency=SESSIONS):
    adapter = load("openai")("m", base_url=url, key_variable=None)
    participant = Listening(adapter) if listening else adapter
    try:
        run = await run_sessions_in(
            folder,
            participant,
            environment,
            n,
            1,
            how=RunOptions(concurrency=concurrency, price=PRICE),
        )
    finally:
        await adapter.close()
    return participant if listening else run


def against_the_client(url, folder):
    environment = InstrumentalLearning(n_visits=6)
    calls = SESSIONS * environment.n_trials
    heard = asyncio.run(a_run(url, folder / "heard", environment, listening=True)).requests
    ways = {
        "plain httpx2": lambda k: client_alone(url, heard),
        "adapter": lambda k: adapter_alone(url, heard),
        "runner, ledger, environment and adapter": lambda k: a_run(
            url, folder / f"run{k}", environment
        ),
    }
    seconds = {name: [] for name in ways}
    for k in range(ROUNDS):
        for name, way in ways.items():
            seconds[name].append(timed(way(k)))
    print(f"\n{SESSIONS} sessions of {environment.n_trials} trials at once, per call")
    for name, times in seconds.items():
        wall, cpu = (median(part) / calls * 1e3 for part in zip(*times, strict=True))
        print(f"  {name:<48}{cpu:8.2f} ms of CPU {wall:8.2f} ms")
    plain, adapter, whole = ([cpu for _, cpu in times] for times in seconds.values())
    goal(
        "CPU of the adapter, in units of plain httpx2",
        median(a / p for a, p in zip(adapter, plain, strict=True)),
        1.6,
        at_most=True,
    )
    goal(
        "CPU of all, in units of plain httpx2",
        median(w / p for w, p in zip(whole, plain, strict=True)),
        3.0,
        at_most=True,
    )


def ledger_alone(folder):
    """All that is written of a call: sent, came, read and judged."""
    environment = InstrumentalLearning(n_visits=6)
    prompt = Session(environment, environment.draw(session_stream(1))).render()
    reply = Reply("A", usage=Usage(500, 1), model_served="m")
    turns = 40

    async def write(ledger):
        for i in range(SESSIONS):
            for turn in range(turns):
                who = {"provider": "p", "model": f"{i}.{turn}", "base_url": ""}
                shown = asked_of(who, Sampling()), prompt
                request = request_hash(shown[0], prompt.hash)
                attempt = Attempt((i, turn, 0), 0, request, "inflight", 999, 9, shown=shown)
                ledger.sent([attempt])
                ledger.came(attempt, b"x" * 500)
                ledger.was_read(attempt, reply)

    for durable in (False, True):
        rates = []
        for k in range(ROUNDS):
            path = folder / f"ledger{k}.{durable}"
            with Ledger.open(path, {"seed": k}, SESSIONS, price=PRICE, durable=durable) as ledger:
                wall, cpu = timed(write(ledger))
            rates.append(SESSIONS * turns / wall)
        waits = "which waits for the disk" if durable else "which outlives a kill"
        used = cpu / (SESSIONS * turns) * 1e6
        print(f"\nledger, {waits}: {median(rates):.0f} calls a second, {used:.0f} us of CPU each")


def large_run(url, folder):
    """Live a run of a thousand sessions, at most 64 at a time, and tell the peak memory."""
    run = asyncio.run(a_run(url, folder / "large", InstrumentalLearning(n_visits=6), n=LARGE))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux tells kB
    print(f"\n{LARGE} sessions, {run.calls} calls")
    goal("GB at most in the process of the run", peak, 1.5, at_most=True)


def kills(folder):
    """Kill a run a hundred times; count calls that are repeated though they were answered."""
    calls, ready, port = [], threading.Event(), []

    def announce(number):
        port.append(number)
        ready.set()

    work = serve(announce, seconds=SLOW, answered=calls)
    threading.Thread(target=asyncio.run, args=(work,), daemon=True).start()
    ready.wait()
    rng, url = random.Random(1), f"http://127.0.0.1:{port[0]}/v1"
    words = [sys.executable, __file__, "lives", url]
    n = done = lost = 0
    answered = set()  # before the process was killed
    while n < KILLS:
        before = len(calls)
        run = subprocess.Popen([*words, str(folder / f"run{done}")])
        while len(calls) == before and run.poll() is None:
            time.sleep(0.01)
        try:
            run.wait(rng.uniform(0.3, 3.0))
            done, killed = done + 1, time.monotonic()  # it came to its end first
        except subprocess.TimeoutExpired:
            killed = time.monotonic()
            os.kill(run.pid, signal.SIGKILL)
            run.wait()
            n += 1
        after_start = calls[before:]
        lost += sum(body in answered for body, _ in after_start)
        answered = {body for body, when in after_start if when is not None and when < killed}
    again = Counter(body for body, _ in calls)
    repeated = sum(times - 1 for times in again.values())
    print(f"\n{n} kills, {AT_ONCE} calls at once, {SLOW} s: {len(calls)} calls for {len(again)}")
    print(f"  repeated: {repeated}, of which had been answered before the kill: {lost}")
    goal("answered calls repeated for each kill", lost / n, 1, at_most=True)


def main(what):
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if what == ["kills"]:
            kills(folder)
            return
        server = subprocess.Popen(
            [sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True
        )
        try:
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            if what == ["memory"]:
                large_run(url, folder)
                return
            ledger_alone(folder)
            against_the_client(url, folder)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve(lambda port: print(port, flush=True)))
    elif sys.argv[1:2] == ["lives"]:
        environment = InstrumentalLearning(n_visits=6)
        asyncio.run(a_run(sys.argv[2], sys.argv[3], environment, n=48, concurrency=AT_ONCE))
    else:
        main(sys.argv[1:])
