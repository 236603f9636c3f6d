"""Known minds of a plan: answers of their own in every cell, and parameters that come back."""

import numpy as np
import pytest

from knownminds.validation.benchmarks.benchmark import begin, read_benchmark
from knownminds.validation.benchmarks.known import recovered_parameters, recovery
from knownminds.validation.benchmarks.plan import read_plan

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
