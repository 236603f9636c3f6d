import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from knownminds.environments import Trials, make
from knownminds.validation.fit import fit, read_fit, same_design
from knownminds.validation.parameter_recovery import recover, resolve_model
from knownminds.validation.report import fit_page, recovery_command, recovery_page, report
from knownminds.validation.simulated_data import simulated_data

PLACE = "instrumental_learning"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "s"
    result = recover(
        PLACE, "rescorla_wagner", subjects=60, intervals="laplace", workers=1, out=folder
    )
    return folder, result


@pytest.fixture(scope="module")
def trials():
    return simulated_data(resolve_model("rescorla_wagner"), make(PLACE), subjects=30, seed=2)


@pytest.fixture(scope="module")
def fitted(trials):
    return fit(trials, "rescorla_wagner", workers=1)


def test_a_report_is_drawn_from_the_folder_alone_and_always_the_same(study):
    folder, result = study
    page = report(folder).read_text()
    assert page == recovery_page(result)
    assert page == report(folder).read_text()


def test_the_page_fetches_nothing(study, fitted):
    for page in (recovery_page(study[1]), fit_page(fitted)):
        assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
        assert "<script" not in page
        assert page.count("data:image/svg+xml;base64,") >= 1


def test_the_page_says_the_verdicts_counts_and_the_command(study):
    page = recovery_page(study[1])
    for scores in study[1].parameters:
        assert f"<strong>{scores.name}</strong>" in page
    assert "Status of the fits" in page
    assert "knownminds recover instrumental_learning --model rescorla_wagner" in page


def test_the_command_repeats_the_study(study):
    command = recovery_command(study[1]).split()
    assert command[:3] == ["knownminds", "recover", PLACE]
    assert command[-2:] == ["--intervals", "laplace"]
    assert command[command.index("--trials") + 1] == "96"


def test_markup_in_names_is_escaped(fitted):
    page = fit_page(dataclasses.replace(fitted, source="<script>alert(1)</script>.csv"))
    assert "<script>" not in page


def test_a_study_in_which_everything_failed_still_has_a_page(study):
    from knownminds.validation.parameter_recovery import summarise

    result = study[1]
    bare = result.rows[["subject", "cell", "replicate", "seconds"]]
    rows = bare.assign(status="failed", message="planted")
    page = recovery_page(summarise(result.study, rows, result.versions))
    assert "60 of 60: planted" in page


def test_a_fit_reads_back_what_it_wrote(fitted, tmp_path):
    fitted.save(tmp_path)
    again = read_fit(tmp_path)
    assert again.to_json() == fitted.to_json()
    assert fit_page(again) == fit_page(fitted)
    assert report(tmp_path).name == "report.html"
    assert len(pd.read_csv(tmp_path / "estimates.csv")) == 30


def test_a_fit_says_what_so_many_trials_support(fitted):
    text = " ".join(fitted.sentences)
    assert "What 96 trials per subject support" in text
    assert set(fitted.support) == {"alpha", "beta", "kappa"}
    assert all(0 <= s.reliability <= 1 for s in fitted.support.values())
    for name, value in fitted.group.items():
        assert value.low <= value.estimate <= value.high, name
    assert set(fitted.comparison) == {"rescorla_wagner", "random_responder"}
    assert sum(v["best_for"] for v in fitted.comparison.values()) == 30


def test_chance_players_are_best_described_by_chance():
    random = simulated_data(resolve_model("random_responder"), make(PLACE), subjects=30)
    frame = random.frame.drop(columns=[c for c in random.frame if c.startswith("true_")])
    found = fit(Trials.from_frame(frame), "rescorla_wagner_dual", workers=1)
    assert found.comparison["random_responder"]["best_for"] > 25


def test_the_check_of_the_design_uses_its_trials_and_sessions():
    place = make(PLACE, n_visits=7)
    lived = simulated_data(resolve_model("rescorla_wagner"), place, subjects=3, sessions=2)
    design, sessions = same_design(lived, make(PLACE))
    assert (design.n_trials, sessions) == (28, 2)


def test_group_medians_do_not_depend_on_the_scale(fitted):
    for name, value in fitted.group.items():
        assert value.estimate == pytest.approx(np.median(fitted.subjects[name]))


def test_constant_subjects_and_those_of_two_trials_get_a_status(trials):
    frame = trials.to_frame()
    always = frame["subject"] == "0"
    frame.loc[always, "action"] = 1
    keep = (frame["subject"] != "1") | (frame["trial"] < 2)
    for method in ("map", "mle"):
        found = fit(Trials.from_frame(frame[keep]), "rescorla_wagner", method=method, workers=1)
        status = found.subjects.set_index("subject")["status"]
        assert status["1"] != "ok"
        assert status["0"] in ("ok", "boundary", "flat")
        assert fit_page(found)
