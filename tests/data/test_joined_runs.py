"""Conditions beside every trial, and several runs in one table."""

import json

import numpy as np
import pandas as pd
import pytest

from knownminds.environments import InstrumentalLearning, Trials, make
from knownminds.environments.conditions import conditions_of, words_hash
from knownminds.inference import MEASURES
from knownminds.llm_adapters import Sampling
from knownminds.validation.cli import main
from knownminds.validation.costs.connect import run
from knownminds.validation.data.fit import fit
from knownminds.validation.data.scores_of_trials import score
from knownminds.validation.data.trials_of_runs import CONDITIONS, joined, with_conditions

MIND = "synthetic:rescorla_wagner_dual"
NEW = ("reasoning", "history", "template", "template_hash", "temperature", "effort")


def lived(folder, reasoning="none", sessions=3, n_visits=2, **options):
    place = InstrumentalLearning(n_visits=n_visits, reasoning=reasoning)
    return run(place, MIND, sessions=sessions, out=folder, **options)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    lived(place / "plain", settings=Sampling(temperature=1.0))
    lived(place / "aloud", "chain_of_thought", sessions=2)
    return place


def test_every_trial_of_a_run_has_its_conditions(runs):
    frame = Trials.load(runs / "plain" / "trials.parquet").frame
    place = InstrumentalLearning(n_visits=2)
    assert set(frame["reasoning"]) == {"none"}
    assert set(frame["history"]) == {"prompt"}
    assert set(frame["temperature"]) == {1.0}
    assert set(frame["template"]) == {"shipped"}
    assert set(frame["template_hash"]) == {words_hash(place)}
    aloud = Trials.load(runs / "aloud" / "trials.parquet").frame
    assert set(aloud["reasoning"]) == {"chain_of_thought"}
    assert aloud["temperature"].isna().all()


def test_words_of_ones_own_have_a_name_and_hash_of_their_own(tmp_path):
    words = InstrumentalLearning.shipped.read_text(encoding="utf-8")
    mine = tmp_path / "mine.toml"
    mine.write_text(words.replace("machines", "devices"), encoding="utf-8")
    place = InstrumentalLearning(templates=str(mine))
    assert conditions_of(place)["template"] == "mine"
    assert words_hash(place) != words_hash(InstrumentalLearning())
    mine.write_text(words, encoding="utf-8")
    assert words_hash(place) == words_hash(InstrumentalLearning())


def test_conditions_do_not_stand_over_what_an_experiment_records():
    found = conditions_of(make("line_ratio", modality="image", condition="gradual_noise"))
    assert "modality" not in found  # of each trial
    assert found["noise"] == "gradual"
    collider = conditions_of(make("collider", content="letters", answer="chain_of_thought"))
    assert (collider["names"], collider["reasoning"]) == ("random", "chain_of_thought")
    assert (collider["content"], collider["overload"]) == ("letters", "none")


def test_runs_are_joined_and_subjects_stay_apart(runs):
    both = joined([runs])
    frame = both.frame
    assert set(CONDITIONS) <= set(frame)
    assert both.n_subjects == 5
    name = "rescorla_wagner_dual"
    assert all(subject.startswith(name) for subject in both.subjects)
    assert {s.rsplit("/", 2)[1] for s in both.subjects} == {"plain", "aloud"}
    assert frame["served_model"].equals(frame["model_served"])
    assert frame["experiment"].equals(frame["environment"])
    # The table holds the settings that both share, so that nothing is read as of another design.
    assert both.settings["instrumental_learning"]["n_visits"] == 2
    assert "reasoning" not in both.settings["instrumental_learning"]
    alone = joined([runs / "plain"])
    assert alone.subjects == ("0", "1", "2")


def test_runs_of_different_designs_share_no_table(runs, tmp_path, capsys):
    lived(tmp_path / "longer", sessions=1, n_visits=3)
    wrong = r"of instrumental_learning plain has n_visits=2 and longer has 3"
    with pytest.raises(ValueError, match=wrong):
        joined([runs / "plain", tmp_path / "longer"])
    with pytest.raises(SystemExit) as end:
        main(["score", str(runs / "plain"), str(tmp_path / "longer"), "--by", "model"])
    assert end.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_run_without_these_columns_has_them_from_its_ledger(runs, tmp_path):
    lived(tmp_path / "old", "step_back", sessions=1, settings=Sampling(temperature=1.0))
    file = tmp_path / "old" / "trials.parquet"
    whole = Trials.load(file).frame
    Trials.from_frame(whole.drop(columns=list(NEW)), environment=make_of(whole)).save(file)
    assert not set(NEW) & set(Trials.load(file).frame)
    again = with_conditions(tmp_path / "old").frame
    for name in NEW:
        assert again[name].equals(whole[name]), name


def make_of(frame):
    return InstrumentalLearning(n_visits=len(frame) // 4)


def test_measures_of_several_runs_are_told_apart_by_a_condition(runs, tmp_path, capsys):
    found = score([runs], by="reasoning")
    rows = found.table.set_index(["measure", "sample"])["value"]
    for sample, folder in (("none", "plain"), ("chain_of_thought", "aloud")):
        trials = Trials.load(runs / folder / "trials.parquet")
        assert rows["performance", sample] == pytest.approx(trials.frame["reward"].mean())
        alone = MEASURES["learning_rate"].estimate(trials).value
        assert rows["learning_rate", sample] == pytest.approx(alone, nan_ok=True)
    with pytest.raises(SystemExit) as end:
        main(["score", str(runs / "plain"), str(runs / "aloud"), "--by", "experiment", "--json"])
    assert end.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["sample"] for row in told["measures"]} == {"instrumental_learning"}
    assert told["options"]["data"] == [str(runs / "plain"), str(runs / "aloud")]


def test_several_runs_are_fitted_and_profiled_together(runs, tmp_path, capsys):
    found = fit([runs / "plain", runs / "aloud"], "rescorla_wagner_dual")
    assert found.n_subjects == 5
    own = fit(runs / "aloud", "rescorla_wagner_dual").subjects.set_index("subject")
    whole = found.subjects.set_index("subject")
    for subject, row in own.iterrows():
        [name] = [s for s in whole.index if s.endswith(f"aloud/{subject}")]
        assert whole.loc[name, "alpha_positive"] == pytest.approx(row["alpha_positive"], abs=1e-4)
    people = tmp_path / "people.csv"
    pd.DataFrame({"metric": ["learning_rate"], "value": [0.5]}).to_csv(people, index=False)
    with pytest.raises(SystemExit):
        main(["phenotype", str(runs), "--by", "reasoning", "--reference", str(people), "--json"])
    told = json.loads(capsys.readouterr().out)
    scored = {(r["participant"], r["metric"]): r["score"] for r in told["scores"]}
    assert scored["none", "learning_rate"] is not None
    assert {who for who, _ in scored} == {"none", "chain_of_thought"}
    assert np.isfinite(scored["chain_of_thought", "learning_rate"])
