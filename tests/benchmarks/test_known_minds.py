"""Known minds of a plan: answers of their own in every cell, and parameters that come back."""

import numpy as np
import pandas as pd
import pytest
from benchmark_pages import typed
from claims import check
from claims.benchmark_known import REPORT

from knownminds.validation.benchmarks.benchmark import begin, read_benchmark
from knownminds.validation.benchmarks.known import recovered_parameters, recovery
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.benchmarks.running import blocked_of, players_of, run_benchmark
from knownminds.validation.costs.budget import budget

PLAN = """
benchmark = "magnitudes"
seed = 1
[sampling]
temperature = 0.0
[experiments.marker_location]
sessions = 1
settings = { modality = "text+image" }
variants = ["text", "image", "base", "verbal", "constant_image", "constant_noise"]
[variants]
text = { settings = { modality = "text" } }
image = { settings = { modality = "image" } }
verbal = { settings = { condition = "verbal" } }
constant_image = { settings = { modality = "image", condition = "constant_noise" } }
constant_noise = { settings = { condition = "constant_noise" } }
[known.plain]
marker_location = { model = "linear_observer", w = 0.9, b = 0.05, sigma = 0.04 }
[known.combiner]
"""
for _name, _image in (("marker_location", 0.04), ("marker_location/constant_image", 0.09),
                      ("marker_location/constant_noise", 0.09)):  # fmt: skip
    PLAN += (
        f'"{_name}" = {{ model = "cue_combiner_optimal", sigma_text = 0.02, '
        f"sigma_image = {_image}, sigma = 0.003 }}\n"
    )


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    place = tmp_path_factory.mktemp("minds")
    (place / "plan.toml").write_text(PLAN, encoding="utf-8")
    plan = read_plan("magnitudes", place / "plan.toml")
    for name in ("one", "again"):
        begin(place / name, plan, [], {}, {})
    return place


@pytest.fixture(scope="module")
def found(lived):
    return read_benchmark(lived / "one")


def answers(found, who, variant):
    own = found.trials[(found.trials["participant"] == who) & (found.trials["variant"] == variant)]
    return own.sort_values(["window", "item"]).reset_index(drop=True)


def test_cells_show_the_same_and_are_answered_with_numbers_of_their_own(found, lived):
    text, image, both = (answers(found, "plain", name) for name in ("text", "image", "base"))
    assert text["value"].tolist() == image["value"].tolist() == both["value"].tolist()
    errors = np.stack([one["response"] - one["value"] for one in (text, image, both)])
    noise = errors - [np.polyval(np.polyfit(text["value"], e, 1), text["value"]) for e in errors]
    # Of 99 independent pairs, correlations have a standard error of .1.
    assert np.abs(np.corrcoef(noise)[np.triu_indices(3, 1)]).max() < 0.4
    again = read_benchmark(lived / "again").trials
    assert found.trials["response"].tolist() == again["response"].tolist()


@pytest.mark.parametrize(("variant", "weight"), [("base", 0.8), ("constant_noise", 0.953)])
def test_a_mind_that_combines_has_its_weight_in_the_cells_of_the_plan(found, variant, weight):
    image = "image" if variant == "base" else "constant_image"
    text, image, both = (answers(found, "combiner", name) for name in ("text", image, variant))
    apart = (text["response"] - image["response"]).to_numpy()
    beyond = (both["response"] - image["response"]).to_numpy()
    own = float(apart @ beyond / (apart @ apart))
    assert abs(own - weight) < 4 * 0.003 / np.sqrt(apart @ apart)  # noise of .003 about the mean
    from knownminds.inference.magnitudes.magnitude_answers import MagnitudeAnswers
    from knownminds.inference.magnitudes.magnitude_composite import cue_combination

    frame = found.trials[found.trials["participant"] == "combiner"]
    read = MagnitudeAnswers.read(frame, "participant")
    condition = "base" if variant == "base" else "constant_noise"
    told = cue_combination(read, "combiner", "marker_location", condition)
    assert told.text_weight["linear"][0] == pytest.approx(own, abs=1e-6)
    # Its own noise of .003 beside that of the cues, .0179: .986, with a standard error of .017.
    assert told.efficiency["bayes_residuals"][0] == pytest.approx(0.986, abs=0.07)


def test_parameters_of_known_minds_come_back(found):
    rows = recovered_parameters(found.trials, found.about)
    assert set(rows["participant"]) == {"plain", "combiner"}
    own = rows[rows["participant"] == "plain"].set_index("parameter")
    text = found.trials[found.trials["participant"] == "plain"]
    w, b = np.polyfit(text["value"], text["response"], 1)
    assert own.loc["w", "value"] == pytest.approx(w, abs=2e-3)  # a weak prior, 594 answers
    assert own.loc["b", "value"] == pytest.approx(b, abs=2e-3)
    assert own.loc["w", "trials"] == 6 * 99
    error = (rows["high"] - rows["low"]) / 3.92
    assert ((rows["value"] - rows["truth"]).abs() < 4 * error).all()
    assert rows["held"].equals((rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"]))
    part = recovery(found.trials, found.about)
    assert f"Of {len(rows)} parameters" in part.sentences[1]
    assert len(part.tables[0][2]) == len(rows)
    check(REPORT, part.sentences, part)


def test_without_answers_or_parameters_rows_say_so(found):
    assert "no answers" in recovery(found.trials.iloc[:0], found.about).sentences[0]
    lost = found.trials.assign(outcome="refused")
    assert recovered_parameters(lost, found.about).empty


# What known minds are asked at ------------------------------------------------------------------

SMALL = """
benchmark = "magnitudes"
[sampling]
temperature = 0.0
[experiments.line_ratio]
sessions = 1
settings = { n_values = 2, repeats = 1, windows = ["short"] }
[known.plain]
line_ratio = { model = "linear_observer" }
"""


def test_a_mind_without_a_temperature_plays_any_plan_and_its_column_says_so(tmp_path):
    (tmp_path / "plan.toml").write_text(SMALL, encoding="utf-8")
    plan = read_plan("magnitudes", tmp_path / "plan.toml")
    played = run_benchmark(plan, players_of(plan, ["synthetic:linear_observer"]), tmp_path / "F")
    assert played.complete
    assert set(played.trials["temperature"]) == {"none"}
    assert len(played.trials) == 4  # two answers each
    by = {who: part["response"].to_numpy() for who, part in played.trials.groupby("participant")}
    # Told in words, to fewer digits.
    assert by["synthetic:linear_observer"] == pytest.approx(by["plain"], abs=1e-3)


@pytest.mark.parametrize(
    ("name", "mind"), [("colliders", "noisy_or"), ("magnitudes", "linear_observer")]
)
def test_plans_as_they_ship_ask_known_minds_for_what_they_have(name, mind):
    plan = read_plan(name)
    (player,) = players_of(plan, [f"synthetic:{mind}"])
    assert blocked_of(plan, [player]) == {}
    assert {player.asked_with(cell).temperature for cell in plan.cells} == {None}
    (other,) = players_of(plan, ["openai:gpt-4o"])
    assert {other.asked_with(cell).temperature for cell in plan.cells} == {0.0}


# The command line -------------------------------------------------------------------------------

CHANCE = """
benchmark = "revealed_belief"
[experiments.dice]
sessions = 1
settings = { n_dice = 1, n_faces = 6 }
"""


@pytest.mark.parametrize(
    ("benchmark", "context", "told"),
    [
        ("revealed_belief", "one die of 6 faces, thrown once", ""),
        ("revealed_belief", "one die of 8 faces", "Nearest: 'one die of 6 faces, thrown once'."),
        ("magnitudes", "any", "--context is for revealed_belief"),
    ],
)
def test_a_context_that_is_not_asked_about_is_told_before_the_first_call(
    tmp_path, capsys, benchmark, context, told
):
    (tmp_path / "plan.toml").write_text(CHANCE if "belief" in benchmark else SMALL, "utf-8")
    words = ["benchmark", benchmark, "--plan", tmp_path / "plan.toml", "--llm", "openai:x"]
    code = typed(*words, "--context", context, "--dry-run")
    error = capsys.readouterr().err
    assert (code, told in error) == (2 if told else 0, True)
    assert len(error.strip().splitlines()) == bool(told)


def test_estimates_count_system_messages(tmp_path, capsys):
    from knownminds.environments import make

    place = make("line_ratio", n_values=2, repeats=1, windows=["short"])
    free = {"openai:mine": {"input": 0, "output": 0}}
    how = {"model": "linear_observer", "prices": free, "sessions": 3}
    bare, more = (budget(place, "openai:mine", system=s, **how) for s in (None, "Be brief. " * 9))
    assert more.usage.calls == bare.usage.calls == 6
    assert more.usage.input_bytes.low - bare.usage.input_bytes.low == 6 * 90
    told = {}
    for system in ("", 'system = "' + "Be brief. " * 9 + '"'):
        text = SMALL.replace("temperature = 0.0", f"temperature = 0.0\n{system}")
        (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
        words = ("benchmark", "magnitudes", "--plan", tmp_path / "plan.toml", "--dry-run")
        assert typed(*words, "--llm", "openai:gpt-4o-mini") == 0
        line = capsys.readouterr().out.splitlines()[0]
        told[bool(system)] = int(line.split(" calls, ")[1].split(" to ")[0].replace(",", ""))
    # 90 bytes are 9 tokens at least, of 2 calls; and a message more.
    assert told[True] - told[False] >= 18
    assert pd.notna(told[True])
