import json
import shlex
import subprocess
import sys

import pandas as pd
import pytest

from knownminds import inference
from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS
from knownminds.inference import MEASURES
from knownminds.validation.engine.study import Study

PLACE = "instrumental_learning"


def of_json(result):
    code, out, err = result
    assert code == 0, err
    assert out.count("\n") == 1
    return json.loads(out)


def test_list_names_what_is_registered(knownminds):
    assert of_json(knownminds("list", "--json")) == {
        "environments": list(ENVIRONMENTS),
        "models": list(AGENTS),
        "measures": list(MEASURES),
    }
    assert "rescorla_wagner_dual" in knownminds("list")[1]


def test_list_starts_without_the_heavy_libraries():
    code = (
        "import sys; from knownminds.validation.cli import main\n"
        "try: main(['list'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pymc', 'arviz', 'nutpie', 'matplotlib', 'jinja2'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [*ENVIRONMENTS, *AGENTS, *MEASURES])
def test_show_describes_every_member(knownminds, name):
    told = of_json(knownminds("show", name, "--json"))
    assert name in (told.get("environment"), told.get("model"), told.get("measure"))
    assert told["source"] in knownminds("show", name)[1]


def test_recover_prints_the_agreed_shape(knownminds):
    told = of_json(
        knownminds(
            "recover", PLACE, "--model", "rescorla_wagner_dual", "--subjects", 40,
            "--method", "map", "--seed", 11, "--json",
        )
    )  # fmt: skip
    assert {"environment", "model", "method", "subjects", "attempted", "failed"} <= set(told)
    assert {"seconds", "versions"} <= set(told)
    for scores in told["parameters"].values():
        assert {"bias", "rmse", "r", "concordance", "verdict"} <= set(scores)
        assert set(scores["coverage"]) == {"50", "80", "90", "95"}
        assert set(scores["monte_carlo_error"]["coverage"]) == {"50", "80", "90", "95"}
    again = of_json(knownminds("recover", PLACE, "--subjects", 40, "--seed", 11, "--json"))
    assert again["parameters"] == told["parameters"]


def test_recover_keeps_a_folder_that_report_redraws(knownminds, tmp_path):
    folder = tmp_path / "s"
    words = ("recover", PLACE, "--subjects", 20, "--intervals", "laplace")
    code, out, err = knownminds(*words, "--out", folder)
    assert code == 0
    assert "verdict" in out
    assert "report" in err
    (folder / "report.html").unlink()
    told = of_json(knownminds("report", folder, "--json"))
    assert told["report"] == str(folder / "report.html")
    assert (folder / "report.html").stat().st_size > 10_000
    assert "temporary folder" in knownminds(*words)[2]


def test_set_reaches_true_parameters_and_settings_alike(knownminds):
    told = of_json(
        knownminds(
            "recover", PLACE, "--subjects", 15, "--set", "alpha_positive=0.4", "--set",
            "n_visits=6", "--fix", "kappa=0", "--intervals", "laplace", "--json",
        )
    )  # fmt: skip
    assert told["truth"] == {"alpha_positive": 0.4}
    assert told["settings"]["n_visits"] == 6
    assert "kappa" not in told["parameters"]
    assert of_json(
        knownminds("recover", PLACE, "--subjects", 15, "--trials", 24,
                   "--intervals", "laplace", "--json")
    )["settings"]["n_visits"] == 6  # fmt: skip


def test_simulated_trials_are_read_back_and_fitted(knownminds, tmp_path):
    file = tmp_path / "t.csv"
    told = of_json(
        knownminds("simulate", PLACE, "--subjects", 12, "--seed", 3, "--out", file, "--json")
    )
    assert len(told["truth"]) == 12
    frame = pd.read_csv(file)
    assert len(frame) == 12 * 96
    assert frame["true_beta"].iloc[0] == pytest.approx(told["truth"][0]["beta"])
    found = of_json(knownminds("fit", file, "--json"))
    assert {"model", "method", "sessions", "group"} <= set(found)
    first = found["sessions"][0]
    assert {"session", "estimates", "intervals", "status"} <= set(first)
    low, high = first["intervals"]["beta"]
    assert low < high
    assert {"estimate", "interval"} <= set(found["group"]["beta"])


def test_simulate_writes_csv_or_json_to_stdout(knownminds):
    words = ("simulate", PLACE, "--subjects", 2, "--sessions", 2, "--trials", 8)
    assert knownminds(*words)[1].count("\n") == 1 + 2 * 2 * 8
    told = of_json(knownminds(*words, "--json"))
    assert len(told["trials"]) == 32
    assert {row["session"] for row in told["trials"]} == {"0", "1"}


def test_data_that_several_experiments_could_have_made_name_none(knownminds, tmp_path):
    knownminds("simulate", "reversal_learning", "--model", "rescorla_wagner", "--out",
               tmp_path / "t.csv")  # fmt: skip
    rows = pd.read_csv(tmp_path / "t.csv")[["subject", "trial", "action", "reward"]]
    rows.to_csv(tmp_path / "bare.csv", index=False)
    code, _, err = knownminds("fit", tmp_path / "bare.csv", "--model", "rescorla_wagner")
    assert code == 2
    assert "do not name their experiment" in err
    assert "plays instrumental_learning, reversal_learning. Name it with --environment" in err


def test_fit_takes_a_table_with_names_of_its_own(knownminds, tmp_path):
    data, folder = tmp_path / "theirs.csv", tmp_path / "f"
    knownminds("simulate", PLACE, "--subjects", 8, "--out", tmp_path / "ours.csv")
    ours = pd.read_csv(tmp_path / "ours.csv")
    theirs = ours[["subject", "trial", "context", "action", "reward"]]
    theirs.columns = ["run", "trial", "task", "choice", "reward"]
    theirs.to_csv(data, index=False)
    code, out, err = knownminds(
        "fit", data, "--columns", "subject=run,context=task,action=choice", "--out", folder
    )
    assert code == 0, err
    assert f"experiment: {PLACE}" in err
    assert "What 96 trials per subject support" in out
    files = {"estimates.csv", "figures", "fit.json", "report.html", "tables"}
    assert {f.name for f in folder.iterdir()} == files


def test_a_hierarchical_fit_takes_a_formula(knownminds, tmp_path, monkeypatch):
    """Sampled for one short round: that the fit converges is tested where group models are."""
    sample, asked = inference.hierarchical, []

    def briefly(*data, **how):
        asked.append(how)
        return sample(*data, **{**how, "draws": 100, "tune": 200, "rounds": 1})

    monkeypatch.setattr(inference, "hierarchical", briefly)
    data = tmp_path / "t.csv"
    words = ("--subjects", 16, "--model", "rescorla_wagner", "--seed", 1)
    knownminds("simulate", PLACE, *words, "--out", data)
    frame = pd.read_csv(data)
    frame["condition"] = (frame["subject"] % 2).map({0: "a", 1: "b"})
    frame.to_csv(data, index=False)
    found = of_json(
        knownminds(
            "fit", data, "--model", "rescorla_wagner", "--method", "hierarchical",
            "--formula", "alpha ~ condition", "--json",
        )
    )  # fmt: skip
    assert set(found["group"]) == {"alpha", "beta", "kappa"}
    assert len(found["effects"]) == 1
    assert found["verdict"] in ("converged", "not converged")
    assert asked[0]["formula"]


STUDIES = {
    "recover": (PLACE, "--subjects", 20, "--intervals", "laplace"),
    "surface": (PLACE, "--subjects", 20, "--trials", 24, "--trials", 48, "--intervals", "laplace"),
    "confuse": (PLACE, "--model", "rescorla_wagner", "--model", "perseverator", "--replicates", 20),
    "calibrate": (PLACE, "--model", "rescorla_wagner", "--replicates", 20, "--trials", 24),
    "power": (PLACE, "--effect", "optimism_bias=0.2", "--sessions", 5, "--sessions", 9,
              "--trials", 24, "--replicates", 20),
    "search": (PLACE, "--effect", "optimism_bias=0.4", "--find", "sessions", "--most", 60,
               "--trials", 24, "--replicates", 200),
    "design": (PLACE, "--for", "beta", "--budget", "trials=96", "--model", "rescorla_wagner",
               "--search", "n_visits=6:12", "--designs", 4, "--replicates", 10, "--fresh", 10),
    "audit": ("optimism_bias", "--trials", 24, "--effect", 0.2, "--subjects", 5,
              "--replicates", 20),
}  # fmt: skip
COMMANDS = {"surface": "recover", "search": "power"}


@pytest.mark.parametrize("study", STUDIES)
def test_every_study_prints_json_and_leaves_a_report_and_the_command_that_repeats_it(
    knownminds, tmp_path, study
):
    words = (COMMANDS.get(study, study), *STUDIES[study], "--seed", 3, "--workers", 1)
    told = of_json(knownminds(*words, "--json", "--out", tmp_path / "a"))
    assert told["versions"]["knownminds"]
    page = (tmp_path / "a" / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "\n" in knownminds(*words, "--out", tmp_path / "a")[1]  # the table, from the folder

    # The report is drawn again from the folder alone, and names a command that gives the same.
    assert knownminds("report", tmp_path / "a")[0] == 0
    assert (tmp_path / "a" / "report.html").read_text() == page
    question, _ = Study.read(tmp_path / "a")
    repeated = shlex.split(question.command_line())[1:]
    again = of_json(knownminds(*repeated, "--json", "--workers", 1))
    for never_alike in (told, again):
        strip_seconds(never_alike)
    assert again == told


def strip_seconds(told):
    for key in list(told):
        if key == "seconds":
            del told[key]
        elif isinstance(told[key], dict):
            strip_seconds(told[key])
        elif isinstance(told[key], list):
            for item in told[key]:
                if isinstance(item, dict):
                    strip_seconds(item)


def test_a_power_search_is_turned_into_money(knownminds, tmp_path):
    words = ("power", *STUDIES["search"], "--seed", 3, "--workers", 1, "--out", tmp_path / "p")
    found = of_json(knownminds(*words, "--json"))
    words = ("budget", PLACE, "--power", tmp_path / "p", "--llm", "openai:gpt-4o-mini", "--json")
    told = of_json(knownminds(*words, "--out", tmp_path / "b"))
    assert told["sessions"] == found["smallest"]["sessions"]
    assert told["usage"]["calls"] == found["smallest"]["sessions"] * 24
    assert (tmp_path / "b" / "report.html").is_file()
    assert len(told["designs"]) == len(found["steps"]) + 1
    own = of_json(knownminds(*words, "--price", "openai:gpt-4o-mini=1000,0"))
    bytes_sent = own["usage"]["input_bytes"]
    assert own["costs"][0]["dollars"]["high"] > 0.3 * bytes_sent["high"] / 1000


def test_shares_are_computed_apart_and_merged(knownminds, tmp_path):
    words = ("audit", *STUDIES["audit"], "--workers", 1)
    whole = of_json(knownminds(*words, "--json"))
    for k in (1, 2):
        code, out, err = knownminds(*words, "--share", f"{k}/2", "--out", tmp_path / str(k))
        assert (code, out) == (0, "")
        assert "knownminds merge" in err
    merged = of_json(
        knownminds("merge", tmp_path / "1", tmp_path / "2", "--out", tmp_path / "m", "--json")
    )
    strip_seconds(whole)
    strip_seconds(merged)
    assert merged == whole
