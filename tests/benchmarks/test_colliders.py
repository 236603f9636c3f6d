"""The page of the collider benchmark: each number by a route of its own, and data with gaps."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from benchmark_pages import everyone_everywhere
from plain_colliders import fitted, left_out, plainly
from scipy.stats import kruskal, spearmanr
from scipy.stats import t as student

from knownminds.agents import AssociativeReasoner, NoisyOr, simulate
from knownminds.environments import Collider
from knownminds.environments.conditions import conditions_of
from knownminds.inference.causes.least_squares_reasoner import leave_one_task_out
from knownminds.inference.causes.reasoner_intervals import reasoner_intervals
from knownminds.validation.benchmarks.colliders import PAPER
from knownminds.validation.benchmarks.paper import About

pytestmark = pytest.mark.long

DOMAINS = ("economy", "sociology", "weather")
PLACES = {
    "collider": Collider(),
    "collider/thought": Collider(answer="chain_of_thought"),
    "collider/overload": Collider(overload="e"),
    **{f"collider/{c}": Collider(content=c, senses=("ppp",)) for c in ("all", "alnum")},
}
MINDS = {
    "sharp": (NoisyOr, [0.4, 0.05, 0.9, 0.8, 0.1]),
    "dull": (AssociativeReasoner, [0.5, 0.25, 0.6, 0.6, 0.3, 0.1]),
}


def lived(who, cell, seed):
    model, theta = MINDS[who]
    frame = simulate(model, np.array([theta]), PLACES[cell], seed).to_frame()
    told = {"participant": who, "experiment": "collider", "cell": cell, "temperature": 0.0}
    return frame.assign(**conditions_of(PLACES[cell]), **told, subject=f"{who}/{cell}")


def everything(cells=tuple(PLACES), minds=tuple(MINDS)):
    return everyone_everywhere(lived, minds, cells, 10)


@pytest.fixture(scope="module")
def trials():
    return everything()


@pytest.fixture(scope="module")
def people():
    return simulate(NoisyOr, np.tile([0.45, 0.2, 0.7, 0.5, 0.2], (4, 1)), Collider(), 3).to_frame()


@pytest.fixture(scope="module")
def page(trials, people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    people.to_csv(folder / "people.csv", index=False)
    dates = {"participant": ["sharp"], "release_date": ["2024-05-13"]}
    pd.DataFrame(dates).to_csv(folder / "features.csv", index=False)
    files = {name: folder / f"{name}.csv" for name in ("people", "features")}
    parts, *_ = PAPER.parts(trials, About(PLACES, tuple(MINDS), seed=1, **files))
    for part in parts:
        for drawing in part.figures.values():
            drawing.figure()
    return {part.name: part for part in parts}


def rows_of(trials, who, setting, prompt):
    """Plain rows of a participant in a condition, by what its cells are called here."""
    cells = {
        ("stories", "number"): ["collider"],
        ("stories", "chain of thought"): ["collider/thought"],
        ("stories, overload e", "number"): ["collider/overload"],
        ("abstract", "number"): ["collider/all", "collider/alnum"],
    }[setting, prompt]
    own = trials[(trials["participant"] == who) & trials["cell"].isin(cells)]
    rows = plainly(SimpleNamespace(to_frame=lambda: own))
    names = [DOMAINS[int(d)] for d in rows["domain"]]
    abstract = setting == "abstract"
    return rows.assign(place=rows["content"] if abstract else names)


def test_intervals_leave_each_story_out(trials):
    """The jackknife, with fits by SciPy to an enumeration of the eight states."""
    own = trials[(trials["participant"] == "sharp") & (trials["cell"] == "collider")]
    own = own[(own["domain"] == 0) & own["sense"].isin([0, 1, 2])]
    found = reasoner_intervals(own, leave_one_task_out(own, parameters=(4,)))
    rows = plainly(SimpleNamespace(to_frame=lambda: own))
    without = []
    for sense in (0, 1, 2):
        kept = rows[rows["sense"] != sense]
        told = (kept["task"].to_numpy(), kept["answer"].to_numpy())
        best = fitted(*told, 4, kept["c2"].to_numpy(), starts=3)
        off = best.fun
        r2 = left_out(*told, 4, kept["c2"].to_numpy(), starts=2)[0] if sense == 0 else np.nan
        without.append([*best.x, np.sqrt((off**2).mean()), np.abs(off).mean(), r2])
    for k, name in enumerate(("p", "b", "m1", "m2", "rmse", "mae")):
        values = np.array(without)[:, k]
        error = np.sqrt(2 / 3 * ((values - values.mean()) ** 2).sum())
        assert found.error[name][0] == pytest.approx(error, abs=2e-4), name
        assert found.low[name][0] < found.value[name][0] < found.high[name][0]
    place = found.blocks[0].index("economy ppp")
    kept = found.without["reasoning_consistency"][0][place]
    assert kept == pytest.approx(without[0][-1], abs=1e-3)
    value, *ends = found.difference("determinacy", *found.subjects * 2)
    assert value == 0.0
    assert np.isnan(ends).all()  # nothing differs, and rounding is no error


def test_intervals_hold_the_truth_as_often_as_they_say():
    """400 minds; a share of 95% has a standard error of 1.1%, and three of them are allowed."""
    truth = [0.45, 0.2, 0.75, 0.6, 0.1]
    trials = simulate(NoisyOr, np.tile(truth, (400, 1)), Collider(), 5).to_frame()
    found = reasoner_intervals(trials, leave_one_task_out(trials, parameters=(4,)))
    for name, value in zip(("p", "b", "m1", "m2"), truth, strict=False):
        share = ((found.low[name] <= value) & (value <= found.high[name])).mean()
        assert share == pytest.approx(0.95, abs=0.033), name


def test_signatures_are_means_over_cells_with_their_t_intervals(trials, page):
    rows = page["signatures"].rows
    assert len(rows) == 3 * (2 * 4 + 1)
    for row in rows[rows["participant"] != "people"].to_dict("records"):
        own = rows_of(trials, row["participant"], row["setting"], row["prompt"])
        plus, minus = {
            "explaining_away": ("VII", "VI"),
            "explaining_away_released": ("VIII", "VI"),
            "markov_violation": ("IV", "V"),
        }[row["quantity"]]
        cells = own.groupby(["place", "sense", "c2", "task"])["answer"].mean().unstack("task")
        apart = cells[plus] - cells[minus]
        assert row["value"] == pytest.approx(apart.mean(), abs=1e-12)
        half = student.ppf(0.975, len(apart) - 1) * apart.sem()
        for end in (row["low"], row["high"]):  # as many errors away as there would be at the end
            room = (1 - end**2) / (1 - apart.mean() ** 2)
            assert abs(end - apart.mean()) == pytest.approx(half * np.sqrt(room), rel=1e-6)


def test_parameters_and_errors_are_those_of_other_fits(trials, page):
    rows = page["errors"].rows.set_index(["participant", "setting", "prompt"])
    table = page["parameters"].tables["Noisy-ORs by number of parameters"].reset_index()
    for who, setting in (("sharp", "stories"), ("dull", "abstract")):
        own = rows_of(trials, who, setting, "number")
        chosen = table[
            (table["participant"] == who)
            & (table["setting"] == setting)
            & (table["prompt"] == "number")
            & table["chosen"]
        ].iloc[0]
        size = int(chosen["parameters"])
        best = fitted(
            own["task"].to_numpy(), own["answer"].to_numpy(), size, own["c2"].to_numpy(), starts=4
        )
        assert chosen["p1"] == pytest.approx(best.x[0], abs=1e-3)
        told = rows.loc[(who, setting, "number")].set_index("quantity")["value"]
        assert told["rmse"] == pytest.approx(np.sqrt((best.fun**2).mean()), abs=1e-5)
        assert told["mae"] == pytest.approx(np.abs(best.fun).mean(), abs=1e-4)
        assert told["loss"] == pytest.approx(0.5 * (best.fun**2).mean(), abs=1e-6)


def test_domains_and_alignment_are_those_of_scipy(trials, people, page):
    omnibus = page["domains"].rows
    row = omnibus[(omnibus["of"] == "dull") & (omnibus["condition"] == "abstract, number")].iloc[0]
    own = rows_of(trials, "dull", "abstract", "number")
    theirs = kruskal(*(part["answer"].to_numpy() for _, part in own.groupby("place")))
    assert row["statistic"] == pytest.approx(theirs.statistic)
    assert row["p_value"] == pytest.approx(theirs.pvalue)
    aligned = page["aligned"].rows
    assert set(aligned["setting"]) == {"stories", "stories, overload e"}
    told = plainly(SimpleNamespace(to_frame=lambda: people))
    item = ["domain", "sense", "c2", "task"]
    reference = told.groupby(item)["answer"].mean().rename("theirs")
    mine = plainly(SimpleNamespace(to_frame=lambda: trials[trials["cell"] == "collider/overload"]))
    mine = mine[mine["participant"] == "sharp"].join(reference, on=item)
    for domain, part in [("all domains", mine), ("weather", mine[mine["domain"] == 2])]:
        found = aligned[
            (aligned["participant"] == "sharp")
            & (aligned["setting"] == "stories, overload e")
            & (aligned["domain"] == domain)
        ].iloc[0]
        rho = spearmanr(part["answer"], part["theirs"].round(12)).statistic
        assert found["value"] == pytest.approx(rho, abs=1e-9)
        assert found["items"] == len(part)


def test_changes_are_differences_of_the_parameters(page):
    changes = page["changes"].rows
    table = page["parameters"].tables["Noisy-ORs by number of parameters"].reset_index()
    table = table[table["chosen"]].set_index(["participant", "setting", "prompt"])
    assert len(changes) == 2 * 4 * 4  # participants, parameters, and pairs that differ in one thing
    for row in changes.to_dict("records"):
        column = {"p": "p1"}.get(row["parameter"], row["parameter"])
        one, other = (
            table.loc[(row["participant"], *row[end].rsplit(", ", 1)), column]
            for end in ("first", "second")
        )
        assert row["difference"] == pytest.approx(one - other, abs=1e-6)
        assert row["low"] <= row["difference"] <= row["high"]
    ranked = page["changes"].tables["Most and least changing models"].reset_index()
    columns = ["first", "second", "parameter", "models", "most", "least"]
    for first, second, parameter, models, most, least in ranked[columns].to_numpy():
        own = changes[
            (changes["first"] == first)
            & (changes["second"] == second)
            & (changes["parameter"] == parameter)
        ]
        size = own.set_index("participant")["difference"].abs()
        assert models == 2
        assert most.split(" ")[0] == size.idxmax()
        assert least.split(" ")[0] == size.idxmin()


def test_answers_of_people_lie_over_those_of_each_mind(page):
    [drawing] = page["tasks"].figures.values()
    axes = {axis.get_title(): axis for axis in drawing.figure().axes if axis.get_title()}
    for who in MINDS:
        over = {line.get_label(): np.array(line.get_ydata()) for line in axes[who].lines}
        theirs = np.array(axes["people"].lines[0].get_ydata())
        assert over["people"] == pytest.approx(theirs, nan_ok=True)
