"""Each sentence that is printed of a run is true of what was asked and came back."""

import asyncio
import json
import re
import sqlite3
from types import SimpleNamespace

import pandas as pd
import pytest
from claims import check
from claims.run import REPORT
from scripted import Scripted

from knownminds.agents import Contaminants
from knownminds.environments import InstrumentalLearning, make
from knownminds.llm_adapters import (
    NoKey,
    RateLimited,
    Rejected,
    Reply,
    Sampling,
    ServerFailed,
    Usage,
)
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import TRIALS, Retries, read_run, run_sessions_in
from knownminds.validation.costs.connect import connect
from knownminds.validation.costs.run_page import run_page

PLACE = InstrumentalLearning(n_visits=2)  # eight trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4, "cached_input": 0.1}})
# A finding's reasons are sentences of their own; what a provider says may hold several.
REASONS = r" (?=\d[\d,]* sessions? unfinished: |Every trial was |Sessions that came to )"


def said_of(run):
    """Every sentence and caption of the page, and every line of words of what is printed."""
    page = run_page(run)
    told = [
        *page.sentences,
        *page.notes,
        *page.transcripts_told,
        *(caption for caption, _ in page.figures),
    ]
    for found in page.findings:
        told += [f"{found.name} {found.word}.", *re.split(REASONS, found.why)]
    lines = str(run).splitlines()
    told += [line for line in lines if not re.match(r"\w+ +(\d+ +[\d.]+%|trials )", line)]
    return [text for text in (*told, run.nothing_read, run.remedy, run.unanswered) if text]


def facts_of(run, **server):
    with sqlite3.connect(run.folder / "ledger.sqlite") as ledger:
        attempts = pd.read_sql(
            "SELECT a.*, c.session, r.body FROM attempt a JOIN call c ON c.id = a.call "
            "JOIN request r ON r.hash = c.request ORDER BY a.id",
            ledger,
        )
        calls = pd.read_sql("SELECT * FROM call", ledger)
    file = run.folder / TRIALS
    rows = pd.read_parquet(file) if file.exists() else pd.DataFrame()
    content = json.loads(run.to_json())
    return SimpleNamespace(
        content=content, rows=rows, attempts=attempts, calls=calls, server=server
    )


def prove(run, **server):
    told = said_of(run)
    check(REPORT, told, facts_of(run, **server))
    return told


def saved(folder):
    """The run of a folder, with the trials that a process which died had no time to write."""
    run = read_run(folder)
    run.trials.save(folder / TRIALS)
    return run


@pytest.fixture(autouse=True)
def undrawn(monkeypatch, request):
    """Captions are read here, and not what is drawn, which takes the longest."""
    for name in ("outcomes_by_trial", "rewards_by_trial"):
        monkeypatch.setattr(f"knownminds.validation.costs.run_page.{name}", lambda frame: "")


def go(folder, adapter, n=2, environment=PLACE, **options):
    options = {"retries": Retries(pause=0.0, unanswered=99), "concurrency": 1, **options}
    return asyncio.run(run_sessions_in(folder, adapter, environment, n, 9, **options))


def answer(*usage, text="?"):
    return Reply(text, usage=Usage(*usage), model_served="m")


# Sixteen kinds of failures, for those of one kind stop a run.
ERRORS = [
    Rejected(f"no, {k}", raw=json.dumps({"error": {"type": "a" * (k + 1)}})) for k in range(16)
]
SCENES = {
    "all malformed": lambda: Scripted(rest="?"),
    "all empty": Scripted,
    "all refused": lambda: Scripted(rest=Reply("I must decline.", "refusal", Usage(9, 3), "m")),
    "all errors": lambda: Scripted(*ERRORS),
    "one session of errors": lambda: Scripted(*ERRORS[:8]),
    "lost and unpaid": lambda: Scripted(
        ServerFailed("lost"), "?", ServerFailed("not there", charged=False), *ERRORS[:3]
    ),
    "no number of tokens": lambda: Scripted("?", rest=answer()),
    "half a number": lambda: Scripted(rest=answer(None, 5)),
    "forged": lambda: Scripted(rest=answer(10, 5, 900, 1000)),
    "hidden reasoning": lambda: Scripted("?", rest=answer(10, 50, 30)),
    "the same error": lambda: Scripted("?", "?", *[Rejected("too long.")] * 9),
}  # fmt: skip
OPTIONS = {
    "free": {},
    "priced": {"price": PRICE},
    "bounded and asked again": {"price": PRICE, "settings": Sampling(max_tokens=9), "re_ask": 2},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_what_is_said_of_a_bad_run_is_so(tmp_path, scene, options):
    run = go(tmp_path, scene(), **options)
    prove(run, trials=8)
    assert str(read_run(tmp_path)) == str(run)


CAPS = [
    Caps(calls=0),
    Caps(calls=5),
    Caps(session_calls=3),
    Caps(tokens=800, answer_tokens=9),
    Caps(session_tokens=1700, answer_tokens=9),
    Caps(dollars="0.0015", answer_tokens=9),
    Caps(session_dollars="0.0016", answer_tokens=9),
]


@pytest.mark.parametrize("caps", CAPS)
def test_what_is_said_of_a_capped_run_is_so(tmp_path, caps):
    run = go(tmp_path, Scripted("?", "?", ServerFailed("lost")), price=PRICE, caps=caps)
    told = prove(run)
    assert any("cap of" in text for text in told)
    prove(go(tmp_path, Scripted("?"), n=3, price=PRICE, caps=caps))  # resumed, with more sessions
    prove(go(tmp_path, Scripted("?"), n=3), trials=8, answer_tokens=9)  # and to its end


class _Stopping(Scripted):
    """Stops the run while its last answer is on its way."""

    async def complete(self, prompt, *, settings):
        if len(self.script) == 1:
            tasks = asyncio.all_tasks()
            next(t for t in tasks if t.get_coro().__name__ == "run_sessions_in").cancel()
            await asyncio.sleep(0)
        return await super().complete(prompt, settings=settings)


def test_what_is_said_of_runs_that_stop_is_so(tmp_path):
    prove(go(tmp_path / "a", Scripted("?", RateLimited("often", 86_400.0))), wait=86_400)
    greedy = answer(10, 5_000)
    caps = Caps(dollars=5, answer_tokens=50)
    prove(go(tmp_path / "b", Scripted("?", greedy), price=PRICE, caps=caps))
    # stopped during the very last answer: nothing is unfinished, and it is said all the same
    with pytest.raises(asyncio.CancelledError):
        go(tmp_path / "c", _Stopping(*["?"] * 8), 1, price=PRICE, caps=caps)
    told = prove(saved(tmp_path / "c"), reason="interrupted")
    assert any("Nothing more would have been asked" in text for text in told)
    with pytest.raises(NoKey):
        go(tmp_path / "d", Scripted("?", NoKey("no key")))
    prove(saved(tmp_path / "d"), reason="no key")
    with pytest.raises(ZeroDivisionError):
        go(tmp_path / "e", Scripted("?", ZeroDivisionError("a bug")))
    prove(saved(tmp_path / "e"), reason="a bug")


def test_what_is_said_of_a_process_that_died_is_so(tmp_path):
    go(tmp_path, Scripted("?"), caps=Caps(calls=5), price=PRICE)
    with sqlite3.connect(tmp_path / "ledger.sqlite") as ledger:  # as kill -9 leaves it
        ledger.execute("UPDATE start SET ended = NULL, reason = NULL, sessions = NULL")
        ledger.execute("UPDATE attempt SET state = 'inflight', cost = NULL WHERE id = 5")
        ledger.execute("UPDATE call SET state = 'open', answer = NULL WHERE id = 5")
    ledger.close()
    (tmp_path / "ledger.tally").unlink()  # which tells of the answer that is taken out here
    prove(saved(tmp_path), reason="died")
    prove(go(tmp_path, Scripted("?")))


def test_what_is_said_of_a_price_that_came_later_is_so(tmp_path):
    scene = (ServerFailed("lost"), "?", answer(), Rejected("no"), answer(10, 5, 900, 1000))
    go(tmp_path, Scripted(*scene), caps=Caps(calls=6))
    told = prove(go(tmp_path, Scripted("?"), price=PRICE))
    assert any(text.startswith("The price came with start 2") for text in told)


@pytest.mark.parametrize(
    ("mind", "place"),
    [
        ("rescorla_wagner", InstrumentalLearning(n_visits=2)),
        ("noisy_or", make("collider", domains=["weather"], senses=["ppp"])),
        ("belief_sampler", make("dice")),
        ("hyperbolic_discounter", make("temporal_discounting")),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_is_said_of_a_known_mind_is_so(tmp_path, mind, place):
    dials = Contaminants(refusal=0.2, malformed=0.2)
    adapter = connect(f"synthetic:{mind}", place, seed=9, contaminants=dials)
    prove(go(tmp_path, adapter, environment=place), truth=mind == "belief_sampler")
