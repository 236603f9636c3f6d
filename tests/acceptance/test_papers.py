"""Each paper's benchmark, small: known agents beside their truth, counts that add up, a page."""

import io
import json
import re
import tomllib

import pandas as pd
import pytest
from matplotlib.figure import Figure

PLANS = {
    "cogbench": """
[sampling]
temperature = 0.0
[experiments]
probabilistic_reasoning = { sessions = 10, variants = ["base", "step_back"] }
instrumental_learning = { sessions = 4 }
balloon_risk = { sessions = 2 }
[variants.step_back]
settings = { reasoning = "step_back" }
[models."synthetic:rescorla_wagner_dual"]
[known.rational]
probabilistic_reasoning = { model = "weighted_bayes", sigma = 0.05 }
instrumental_learning = { model = "rescorla_wagner_dual", beta = 5.0, kappa = 0.0 }
balloon_risk = { model = "balloon_pumper", gamma = 1.0 }
[known.random]
probabilistic_reasoning = { model = "random_rater" }
instrumental_learning = { model = "random_responder" }
balloon_risk = { model = "random_responder" }
""",
    "colliders": """
[sampling]
temperature = 0.0
[experiments]
stories = { environment = "collider", sessions = 1, settings = { senses = ["ppp"] } }
[models."synthetic:noisy_or"]
[known.rational]
stories = { model = "noisy_or", p = 0.5, b = 0.05, m1 = 0.95, m2 = 0.95, sigma = 0.03 }
[known.biased]
stories = { model = "associative_reasoner", p = 0.5, b = 0.25, m1 = 0.6, m2 = 0.6, sigma = 0.1 }
""",
    "diagnosis": """
[sampling]
temperature = 1.0
[experiments.heart]
environment = "diagnosis"
sessions = 1
settings = { network = "heart", n_contexts = 20, repeats = 2 }
[models."synthetic:random_utility"]
[known.rational]
heart = { model = "random_utility", u_yes_1 = 4.0, u_yes_0 = -4.0, s_between = 0.2 }
[known.biased]
heart = { model = "outcome_peeker", u_yes_1 = 4.0, u_yes_0 = -4.0, delta = 0.8 }
""",
    "magnitudes": """
[sampling]
temperature = 0.0
[experiments.marker_location]
sessions = 1
settings = { modality = "text+image", n_values = 4, repeats = 1 }
variants = ["text", "image", "base"]
[variants]
text = { settings = { modality = "text" } }
image = { settings = { modality = "image" } }
[models."synthetic:linear_observer"]
[known.rational]
marker_location = { model = "linear_observer", w = 0.98, b = 0.0, sigma = 0.02 }
[known.biased]
marker_location = { model = "linear_observer", w = 0.6, b = 0.2, sigma = 0.05 }
""",
    "revealed_belief": """
[sampling]
temperature = 1.0
[experiments]
dice_1_4 = { environment = "dice", sessions = 10, settings = { n_dice = 1, n_faces = 4 } }
choice_4 = { environment = "choice", sessions = 20, settings = { n_options = 4 } }
[models."synthetic:belief_sampler"]
[known.rational]
dice_1_4 = { model = "belief_sampler", leak = 0.0001 }
choice_4 = { model = "belief_sampler", leak = 0.0001 }
[known.biased]
choice_4 = { model = "belief_sampler", bias_first = 2.0, leak = 0.0001 }
""",
}
CANNOT_READ = pytest.mark.xfail(
    strict=True, reason="the cells' names are read as numbers, and no parameter is estimated"
)
NOT_ALL_CELLS = {"cogbench"}  # whose model learns from rewards, which one experiment does not pay


LENGTHY = {"diagnosis", "magnitudes", "revealed_belief"}  # pages of these have tests of their own


@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=[pytest.mark.long] * (n in LENGTHY)) for n in sorted(PLANS)],
)
def paper(request, tmp_path_factory):
    """The name of a paper, the folder of its benchmark, and how it was begun."""
    place = tmp_path_factory.mktemp(request.param)
    text = f'benchmark = "{request.param}"\nseed = 3\n{PLANS[request.param]}'
    (place / "plan.toml").write_text(text, encoding="utf-8")
    words = ("benchmark", request.param, "--plan", place / "plan.toml", "--out", place / "F")
    return request.param, place / "F", (*words, "--json")


@pytest.fixture(scope="module", autouse=True)
def figures_not_drawn():
    """To draw takes most of the time, and what is drawn is tested elsewhere."""

    def write(self, file, **how):
        if hasattr(file, "write"):
            empty = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'
            file.write(empty if isinstance(file, io.TextIOBase) else empty.encode())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", write)
        yield


@pytest.fixture
def begun(paper, knownminds):
    """What the command printed, run once for all tests of a paper."""
    name, folder, words = paper
    if not (folder / "said.json").exists():
        code, said, err = knownminds(*words)
        assert code == (1 if name in NOT_ALL_CELLS else 0), err
        (folder / "said.json").write_text(said)
    return name, folder, json.loads((folder / "said.json").read_text())


def test_every_cell_is_counted_and_the_same_command_goes_on(begun, paper, knownminds):
    name, folder, told = begun
    assert told["options"]["benchmark"] == name
    outcomes = ("ok", "repaired", "malformed", "refused", "empty", "truncated", "error")
    for cell in told["parts"]["cells"]:
        if cell["status"] == "finished":
            assert cell["ended"] == cell["sessions"]
            assert cell["trials"] == sum(cell[one] for one in outcomes) > 0
            assert cell["readable"] == cell["ok"] + cell["repaired"]
        else:
            assert cell["reason"]
            assert cell["trials"] == cell["calls"] == 0
    whole = all(cell["status"] == "finished" for cell in told["parts"]["cells"])
    assert (told["missing"] == 0) == whole == (name not in NOT_ALL_CELLS)
    runs = [pd.read_parquet(file) for file in folder.glob("runs/**/trials.parquet")]
    assert sum(map(len, runs)) == sum(cell["trials"] for cell in told["parts"]["cells"])
    before = {file: file.read_bytes() for file in folder.glob("runs/**/trials.parquet")}
    again = knownminds(*paper[2])
    assert again[0] == (1 if name in NOT_ALL_CELLS else 0)
    assert json.loads(again[1])["parts"]["cells"] == told["parts"]["cells"]
    assert {file: file.read_bytes() for file in before} == before


def test_known_agents_stand_beside_their_truth(begun, request):
    name, folder, told = begun
    if name == "revealed_belief":
        request.applymarker(CANNOT_READ)
    table = pd.read_csv(folder / "tables" / "known_agents.csv")
    assert set(table["participant"]) <= set(told["options"]["known"])
    rows = table.dropna(subset=["parameter"])
    rows = rows[rows["truth"].notna()]
    assert len(rows) >= 3
    assert rows["value"].notna().all()
    # An interval of 95% is 3.92 standard errors wide; beyond 4.5 of them is one in 150,000.
    error = (rows["high"] - rows["low"]) / 3.92
    assert ((rows["value"] - rows["truth"]).abs() < 4.5 * error).all()
    inside = (rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"])
    assert (rows["within"].astype(str) == inside.astype(str)).all()


def test_the_page_stands_alone_and_is_drawn_again_from_the_folder(begun, knownminds):
    _, folder, told = begun
    page = folder / "report.html"
    text = page.read_text(encoding="utf-8")
    for who in (*told["options"]["models"], *told["options"]["known"]):
        assert who in text
    loaded = re.findall(r"""<(?:script|img|link|iframe)[^>]*?(?:src|href)=["']([^"']+)""", text)
    assert all(where.startswith(("data:", "#")) for where in loaded)
    page.unlink()
    code, _, err = knownminds("report", folder)
    assert code == 0, err
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "llm"),
    [
        ("cogbench", "synthetic:rescorla_wagner_dual"),
        ("colliders", "synthetic:noisy_or"),
        ("diagnosis", "synthetic:random_utility"),
        ("magnitudes", "synthetic:linear_observer"),
        ("revealed_belief", "synthetic:belief_sampler"),
    ],
)
def test_a_plan_as_it_ships_is_played_small(knownminds, tmp_path, name, llm):
    code, said, err = knownminds(
        "benchmark", name, "--small", "--llm", llm, "--out", tmp_path / "F", "--json"
    )
    assert code in (0, 1), err  # 1: a synthetic agent cannot play all experiments
    told = json.loads(said)
    assert {cell["status"] for cell in told["parts"]["cells"]} <= {"finished", "not begun"}
    assert any(cell["status"] == "finished" for cell in told["parts"]["cells"])
    assert (tmp_path / "F" / "report.html").exists()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (("sessions = 2 }", "sessions = 0 }"), "sessions"),
        (('"base", "step_back"', '"base", "stepback"'), "stepback"),
        (("seed = 3", "seeds = 3"), "seeds"),
        (("temperature = 0.0", "heat = 0.0"), "heat"),
        (("balloon_risk = { sessions", "balloon_rsik = { sessions"), "balloon_rsik"),
        (('"balloon_pumper"', '"random_rater"'), "random_rater"),
        (("[known.rational]", "[known.rational"), "TOML"),
    ],
)
def test_what_is_wrong_in_a_plan_is_said_and_nothing_is_begun(knownminds, tmp_path, change, name):
    file = tmp_path / "mine.toml"
    text = 'benchmark = "cogbench"\nseed = 3\n' + PLANS["cogbench"]
    assert change[0] in text
    file.write_text(text.replace(*change), encoding="utf-8")
    code, out, err = knownminds("benchmark", "cogbench", "--plan", file, "--out", tmp_path / "F")
    assert (code, out) == (2, "")
    assert name in err
    assert "Traceback" not in err
    assert not (tmp_path / "F").exists()


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_ships_is_printed_and_can_be_given_back(knownminds, tmp_path, name):
    code, text, _ = knownminds("benchmark", name, "--plan")
    assert code == 0
    plan = tomllib.loads(text)
    assert plan["benchmark"] == name
    assert "rational" in plan["known"]
    assert len(plan["known"]) > 1
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    given = knownminds("benchmark", name, "--plan", tmp_path / "plan.toml", "--out", tmp_path / "F")
    assert given[0] == 2  # it names no model, and is taken up to there
    assert "--llm" in given[2]
    assert not (tmp_path / "F").exists()
