"""Questions that are chosen while a language model answers: recorded, and reproduced."""

import asyncio
import json

import pytest

from knownminds.agents import HyperbolicDiscounter
from knownminds.environments import Picked, TemporalDiscounting
from knownminds.inference import ChosenQuestions, play_chosen
from knownminds.llm_adapters import Synthetic
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.desk import Batching
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.runner import read_run, run_sessions_in

PLACE = TemporalDiscounting(design="grid", losses=False)
MIND = HyperbolicDiscounter(k=0.06, tau=0.08, eta=1.0)
CHOSEN = ChosenQuestions(HyperbolicDiscounter, 5, fixed={"eta": 1.0})


def run(folder, chosen=CHOSEN, **options):
    adapter = Synthetic(MIND, PLACE, 4, 0)
    return asyncio.run(
        run_sessions_in(folder, adapter, PLACE, 2, 4, address=(0,), chosen=chosen, **options)
    )


class Otherwise(ChosenQuestions):
    """Chooses the last questions of a design: what it picks, none else would."""

    def __call__(self, environment, design):
        return lambda rows: Picked(environment.n_trials - 1 - len(rows), 0.0)


def picked(run):
    return {s: g["picked"].tolist() for s, g in run.trials.frame.groupby("subject")}


def test_a_run_that_was_stopped_goes_on_with_the_questions_that_were_chosen(tmp_path):
    whole = run(tmp_path / "whole")
    for i in range(2):  # the direct path of the same mind
        assert (
            picked(whole)[str(i)]
            == play_chosen(MIND, PLACE, CHOSEN, 4, 0, i).frame["picked"].tolist()
        )
    part = run(tmp_path / "part", caps=Caps(calls=4), concurrency=1)
    assert part.unfinished
    again = run(tmp_path / "part")
    assert picked(again) == picked(whole)
    assert again.account.calls == whole.account.calls  # nothing was asked twice
    # Choices are read, not reckoned: another rule leaves what was chosen as it was.
    run(tmp_path / "other", caps=Caps(calls=3), concurrency=1)
    mixed = picked(run(tmp_path / "other", Otherwise(**vars(CHOSEN))))
    # (the question at which the cap stopped each session had been chosen already)
    assert mixed["0"] == [*picked(whole)["0"][:4], 139]
    assert mixed["1"] == [picked(whole)["1"][0], 142, 141, 140, 139]
    # and a run is read without any model
    assert picked(read_run(tmp_path / "other")) == mixed


def test_the_ledger_holds_each_choice_and_what_it_promised(tmp_path):
    found = run(tmp_path / "run").trials.frame
    with Ledger.read(tmp_path / "run") as ledger:
        assert ledger.configuration["chosen"] == json.loads(json.dumps(CHOSEN.told()))
        for i in range(2):
            rows = found[found["subject"] == str(i)]
            pairs = zip(rows["picked"], rows["expected_information"], strict=True)
            assert list(ledger.choices_of(i).values()) == list(pairs)
    with pytest.raises(ValueError, match="goes on as it began"):
        run(tmp_path / "run", ChosenQuestions(HyperbolicDiscounter, 6, fixed={"eta": 1.0}))


def test_questions_that_wait_for_answers_are_not_asked_in_batches(tmp_path):
    from knownminds.llm_adapters.runs.runner import check_chosen

    with pytest.raises(ValueError, match="Leave --batch out"):
        check_chosen(CHOSEN, PLACE, Batching(turns=True))
