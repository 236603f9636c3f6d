"""What is said of runs that went badly: nothing that is not so."""

import asyncio
import json
import shlex
import sqlite3
from decimal import Decimal

import pandas as pd
import pytest
from scripted import Scripted

from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters import Rejected, Reply, Sampling, ServerFailed, Usage
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import Retries, read_run, run_sessions_in
from knownminds.validation.costs.run_page import run_command, run_page

PLACE = InstrumentalLearning(n_visits=2)  # eight trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4, "cached_input": 0.1}})
QUICK = Retries(pause=0.0, identical=99, unanswered=99)
SILENT = Reply("?", usage=Usage(), model_served="m")


def go(folder, adapter, n=2, **options):
    options = {"price": PRICE, "retries": QUICK, "concurrency": 1, **options}
    return asyncio.run(run_sessions_in(folder, adapter, PLACE, n, 9, **options))


def refused_one_by_one():
    """Failures of sixteen kinds, so that none of them stops the run."""
    kinds = [json.dumps({"error": {"type": "a" * (k + 1)}}) for k in range(16)]
    return Scripted(*[Rejected(f"no, {k}", raw=kinds[k]) for k in range(16)])


def table(run, title):
    _, head, rows = next(t for t in run_page(run).tables if t[0] == title)
    return pd.DataFrame(rows, columns=head)


def whole(run):
    return "\n".join(f"{f.name} {f.word}. {f.why}" for f in run_page(run).findings)


def test_the_sessions_dollars_are_what_the_provider_was_paid(tmp_path):
    run = go(tmp_path, Scripted(*["?"] * 5, ServerFailed("down"), rest="?"), re_ask=1)
    with sqlite3.connect(tmp_path / "ledger.sqlite") as ledger:
        query = "SELECT SUM(cost) FROM attempt WHERE state = 'ok'"
        ((nano,),) = ledger.execute(query).fetchall()
    assert nano == 32 * (7 * 1000 + 2 * 4000)  # each malformed answer was asked for again
    told = [Decimal(cell) for cell in table(run, "Sessions")["dollars for answers"]]
    assert sum(told) == Decimal(nano) / 10**9 == run.dollars_paid


@pytest.mark.parametrize("caps", [Caps(session_calls=3), Caps(calls=3)])
def test_a_run_that_a_cap_has_stopped_is_not_said_to_have_asked_every_trial(tmp_path, caps):
    run = go(tmp_path, Scripted(), caps=caps)
    assert "0 of 2 lived to their end" in whole(run)
    assert "cap of 3 calls is reached" in whole(run)
    assert "Every trial was asked" not in whole(run)
    assert run.remedy == "With larger caps the same command goes on from here."


def test_a_run_whose_every_trial_is_an_error_is_not_complete(tmp_path):
    run = go(tmp_path, refused_one_by_one())
    assert run.ended == 2
    assert run.silent == 2
    assert not run.complete
    assert not json.loads(run.to_json())["complete"]
    assert "complete" not in str(run) + whole(run)
    assert run.nothing_read.startswith("No answer could be read: 16 error.")
    assert "So there is nothing to estimate from." in whole(run)
    assert list(table(run, "Sessions")["dollars for answers"]) == ["0", "0"]


def test_one_session_without_an_answer_is_counted(tmp_path):
    answers = [Rejected(f"no, {k}") for k in range(8)]
    run = go(tmp_path, _Letters(*answers))
    assert run.complete
    assert run.silent == 1
    assert "without a readable answer: 1." in whole(run)


class _Letters(Scripted):
    """After the script, answers with an option."""

    async def complete(self, prompt, *, settings):
        reply = await super().complete(prompt, settings=settings)
        if reply.text:
            return reply
        options = [w.strip(".,?:") for w in prompt.messages[-1].content.split()]
        letter = next(w for w in reversed(options) if len(w) == 1 and w.isupper())
        return Reply(letter, usage=reply.usage, model_served="m")


def test_the_command_leaves_with_three_where_no_answer_could_be_read(knownminds, tmp_path):
    words = ["run", PLACE.name, "--llm", "synthetic:rescorla_wagner_dual", "--trials", 8]
    refuses = ["--contaminate", "refusal=1", "--out", tmp_path / "a"]
    code, said, err = knownminds(*words, *refuses, "--json")
    assert code == 3
    assert not json.loads(said)["complete"]
    assert "No answer could be read: 8 refused.\nThe same command asks nothing again." in err
    assert "goes on" not in err
    assert knownminds(*words, *refuses)[0] == 3  # also when nothing is left to ask
    code, _, err = knownminds(*words, "--cap", "session_calls=3", "--out", tmp_path / "b")
    assert code == 1
    assert "With larger caps the same command goes on from here." in err
    assert knownminds(*words, "--out", tmp_path / "b")[0] == 0


def test_a_price_that_comes_later_is_taken_and_counts_as_if_it_had_always_been_known(tmp_path):
    script = [
        "?",
        ServerFailed("lost"),
        SILENT,
        Reply("?", usage=Usage(1000, 50, 30, 400), model_served="m"),
        ServerFailed("not there", charged=False),
        Rejected("no"),
        Reply("?", usage=Usage(None, 50), model_served="m"),
    ]
    runs = []
    for name, first in (("known", PRICE), ("later", None)):
        options = {"settings": Sampling(max_tokens=9), "re_ask": 1}
        before = go(tmp_path / name, Scripted(*script), caps=Caps(calls=9), price=first, **options)
        assert (before.dollars is None) is (first is None)
        runs.append(go(tmp_path / name, Scripted(), caps=Caps(dollars=5), **options))
    known, later = runs
    assert known.account == later.account
    assert known.account.paid > 0 < known.account.reserved
    columns = [c for c in known.trials.frame if c != "labels"]
    pd.testing.assert_frame_equal(known.trials.frame[columns], later.trials.frame[columns])
    assert (known.priced_from, later.priced_from) == (1, 2)
    assert "The price came with start 2" in " ".join(run_page(later).sentences)
    assert read_run(tmp_path / "later").account == later.account
    # a price that is there stays
    other = price_of("a:b", overrides={"a:b": {"input": 9, "output": 9}})
    assert go(tmp_path / "later", Scripted(), price=other, **options).account == later.account


def test_answers_without_a_number_of_tokens_are_not_told_as_paid(tmp_path):
    run = go(tmp_path, Scripted(rest=SILENT))
    said = " ".join(run_page(run).sentences)
    assert "16 of the 16 answers came without their number of tokens" in said
    assert run.dollars_paid == 0 < run.dollars
    assert "Where nothing bounded an answer" in said
    bounded = go(tmp_path / "b", Scripted(rest=SILENT), settings=Sampling(max_tokens=9))
    assert "bounded an answer" not in " ".join(run_page(bounded).sentences)


def test_more_cached_or_reasoned_than_there_was_lowers_no_sum(tmp_path):
    forged = Reply("?", usage=Usage(10, 5, 900, 1000), model_served="m")
    run = go(tmp_path, Scripted(rest=forged))
    assert run.dollars == 16 * (10 * Decimal("0.1") + 5 * 4) / 10**6  # all ten cached, not more
    assert (run.account.reasoning_tokens, run.account.cached_tokens) == (16 * 5, 16 * 10)


def test_the_command_of_a_known_mind_goes_on_with_its_run(knownminds, tmp_path):
    words = ["--set", "beta=5", "--contaminate", "malformed=0.5", "--trials", 8, "--price", "1,4"]
    mind = "synthetic:rescorla_wagner_dual"
    assert knownminds("run", PLACE.name, "--llm", mind, *words, "--out", tmp_path)[0] == 0
    run = read_run(tmp_path)
    again = shlex.split(run_command(run, PLACE))
    assert again[0] == "knownminds"
    code, said, err = knownminds(*again[1:], "--json")
    assert code == 0, err
    assert json.loads(said)["starts"] == 2
    assert json.loads(said)["calls"] == {"ok": run.calls}
    new = [word if word != str(tmp_path) else str(tmp_path / "new") for word in again[1:]]
    assert knownminds(*new)[0] == 0
    assert read_run(tmp_path / "new").dollars == run.dollars


def test_names_are_told_as_they_are(knownminds, tmp_path):
    words = ["run", PLACE.name, "--llm", "openai:m", "--base-url", "http://127.0.0.1:9/v1"]
    code, _, err = knownminds(*words, "--price", "1,4", "--out", tmp_path, "--attempts", 1)
    assert code == 1
    assert "(openai:m: $1 input" in err  # and no emoji
