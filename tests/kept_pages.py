"""Small finished folders of every kind of result that has a page, to look at their pages.

`python tests/kept_pages.py FOLDER [KIND ...]` makes them anew. What they hold is kept in
`tests/pages/kept`, one archive each; `pages_of_every_kind` draws their pages.
"""

import shutil
import sys
import tarfile
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

KEPT = Path(__file__).with_name("pages") / "kept"
PLACE, MODEL = "instrumental_learning", "rescorla_wagner"
EFFECT = {"optimism_bias": 0.4}
DRAWN = {"report.html", "figures", "tables"}
ONE = {"workers": 1}


def recovery(out):
    from knownminds import recover

    recover(PLACE, "rescorla_wagner_dual", subjects=60, intervals="laplace", out=out, **ONE)


def surface(out):
    from knownminds.validation.recovery.recovery_surface import recovery_surface

    sizes = {"subjects": (30,), "sessions": (1, 2), "trials": (24, 48)}
    recovery_surface(PLACE, MODEL, **sizes, intervals="laplace", out=out, **ONE)


def unfinished(out):
    surface(out)
    next((out / "parts").glob("*.parquet")).unlink()


def confusion(out):
    from knownminds import confuse

    models = ["rescorla_wagner", "rescorla_wagner_dual", "random_responder"]
    confuse(PLACE, models, replicates=20, out=out, **ONE)


def calibration(out):
    from knownminds import calibrate

    calibrate(PLACE, MODEL, replicates=40, trials=24, out=out, **ONE)


def power(out):
    from knownminds import power as ask

    ask(PLACE, EFFECT, sessions=(4, 8), trials=24, replicates=40, out=out, **ONE)


def smallest(out):
    from knownminds.validation.power.smallest_design import smallest_design

    given = {"target": 0.4, "trials": 24, "most": 60, "replicates": 60}
    smallest_design(PLACE, {"optimism_bias": 0.8}, **given, out=out, **ONE)


def sequential(out):
    from knownminds.inference import StoppingRule
    from knownminds.validation.power.sequential import sequential_design

    rule = StoppingRule("alpha_spending", (4, 8))
    sequential_design(PLACE, EFFECT, stop=rule, trials=24, replicates=30, out=out, **ONE)


def models(out):
    from knownminds.validation.power.model_power import model_power

    given = {"model": "rescorla_wagner_dual", "subjects": (1, 4), "trials": 24, "replicates": 40}
    model_power(PLACE, ["random_responder"], **given, out=out, **ONE)


def design(out):
    from knownminds.validation.design.best_design import best_design

    small = {"model": MODEL, "designs": 6, "replicates": 64, "fresh": 60, "seed": 4}
    best_design(PLACE, budget={"trials": 192}, out=out, **small, **ONE)


def audit(out):
    from knownminds import audit as ask

    ask("optimism_bias", effects=(0.2,), subjects=5, trials=(24, 48), replicates=60, out=out, **ONE)


def coherence(out):
    from knownminds.validation.diagnosis.coherence_audit import coherence_audit

    minds = {"random_utility": (0.0,), "outcome_peeker": (0.5,)}
    few = {"replicates": 12, "contexts": 80, "repeats": 3, "permutations": 99, "bootstraps": 60}
    coherence_audit(minds, **few, out=out)


def consistency(out):
    from knownminds.validation.magnitudes.consistency_audit import consistency_audit

    consistency_audit(trials=(33, 99), participants=60, prior_weight=0.5, out=out)


def shortcuts(out):
    from knownminds.validation.power.shortcut_audit import shortcut_audit

    shortcut_audit(sessions=20, seed=1, out=out)


def channel(out):
    from knownminds.validation.channel.channel_study import channel as ask

    ask(PLACE, MODEL, contaminants=("none", "refusal=0.1"), subjects=4, trials=24, out=out, **ONE)


def learners(n=12):
    from knownminds.environments import make
    from knownminds.validation.engine.arguments import resolve_model
    from knownminds.validation.engine.simulated_data import simulated_data

    return simulated_data(resolve_model(MODEL), make(PLACE), subjects=n, seed=2)


def fit(out):
    from knownminds.validation.data.fit import fit as ask

    ask(learners(), MODEL, workers=1).save(out)


def prior(out):
    from knownminds.validation.data.prior import prior as ask

    ask(PLACE, MODEL, minds=60).save(out)


def budget(out):
    from knownminds.validation.costs.budget import budget as ask

    own = {"mine:own": {"input": "0.5", "output": 2, "cached_input": 0.125}}
    llms = ["openai:gpt-4o", "mine:own"]
    ask(PLACE, llms, subjects=3, trials=24, prices=own, date=date(2026, 11, 1)).save(out)


def players():
    """Three participants in two experiments; of the last, nothing could be read."""
    from knownminds.agents import AGENTS, simulate
    from knownminds.environments import make

    minds = {
        "model-with-a-long-name-of-a-vendor-2026-11": 2.0,
        "another-model": 0.5,
        "nobody-could-read": 1.0,
    }
    frames = []
    for who, gamma in minds.items():
        theta = np.tile([0.95, 0.05, gamma, 0.4], (12, 1))
        frame = simulate(AGENTS["balloon_pumper"], theta, make("balloon_risk"), 1).to_frame()
        frames.append(frame.assign(model=who, subject=frame["subject"] + who))
    every = pd.concat(frames, ignore_index=True)
    gone = every["model"] == "nobody-could-read"
    every = every[~gone | (every["pump"] == 1)].reset_index(drop=True)  # an unread one ends it
    gone = every["model"] == "nobody-could-read"
    every["trial"] = every.groupby("subject", sort=False).cumcount()
    every.loc[gone, ["action", "reward"]] = np.nan
    every.loc[gone, "outcome"] = "refused"
    return every


def score(out):
    from knownminds.environments import Trials
    from knownminds.validation.data.scores_of_trials import score as ask

    ask(Trials.from_frame(players()), by="model").save(out)


def phenotype(out):
    from knownminds.environments import Trials
    from knownminds.validation.data.phenotype import phenotype as ask

    every = players()
    people = {name: [Trials.from_frame(own)] for name, own in every.groupby("model", sort=False)}
    reference = {"risk": 20.0, "balloon_risk_performance": 9.0, "learning_rate": 0.4}
    metrics = ["risk", "balloon_risk_performance", "learning_rate"]
    ask(people, reference=reference, metrics=metrics, sessions=60).save(out)


def magnitude(out):
    from magnitude_sets import answers_of

    from knownminds.inference.magnitudes.consistency_score import ABLATIONS
    from knownminds.validation.magnitudes.magnitude_table import magnitude_table

    frames = [answers_of("steady", conditions=("base", *ABLATIONS), seed=2),
              answers_of("turner", conditions=("base", *ABLATIONS), prior=0.6)]  # fmt: skip
    frame = pd.concat(frames, ignore_index=True)
    chosen = (frame["environment"] == "line_ratio") & (frame["condition"] < 2)
    magnitude_table(frame[chosen], rounds=5, replicates=100).save(out)


def beliefs(out):
    from knownminds.agents import AGENTS, simulate
    from knownminds.environments import make
    from knownminds.validation.diagnosis.belief_battery import belief_battery

    mind = {"u_yes_1": 4.0, "u_yes_0": -4.0, "u_defer_1": 1.0, "u_defer_0": 0.5, "c": 0.0,
            "d": 1.0, "s_between": 0.2, "s_report": 0.05}  # fmt: skip
    place, frames = make("diagnosis", n_contexts=60, repeats=3), []
    for model, dial in (("random_utility", {}), ("outcome_peeker", {"delta": 0.5})):
        names = AGENTS[model].parameters.names
        theta = np.array([[(mind | dial)[name] for name in names]])
        frame = simulate(AGENTS[model], theta, place, 5).to_frame()
        frames.append(frame.assign(model=model, session=model))
    file = out.with_suffix(".csv")
    pd.concat(frames, ignore_index=True).to_csv(file, index=False)
    belief_battery([file], learner="tree", permutations=99, bootstraps=40).save(out)
    file.unlink()


def revealed(out):
    from knownminds.validation.chance.revealed import reveal

    truth = {"temperature": 1.6, "bias_first": 0.7, "bias_repeat": -0.5, "known": 0.4, "leak": 0.1}
    asked = {"scenarios": ("choice", "preference"), "truth": truth, "leak": 0.2, "seed": 3}
    reveal("synthetic:belief_sampler_stated", **asked).save(out)


PLAN = """
benchmark = "cogbench"
seed = 3
[experiments]
probabilistic_reasoning = { sessions = 8 }
instrumental_learning = { sessions = 3, settings = { n_visits = 2 } }
[known.rational]
probabilistic_reasoning = { model = "weighted_bayes", sigma = 0.05 }
instrumental_learning = { model = "rescorla_wagner_dual", beta = 8.0 }
[known.random]
probabilistic_reasoning = { model = "random_rater" }
instrumental_learning = { model = "random_responder" }
"""


def benchmark(out):
    from dataclasses import replace

    from knownminds.validation.benchmarks.benchmark import begin, folder_of_cell
    from knownminds.validation.benchmarks.known import live
    from knownminds.validation.benchmarks.plan import read_plan

    file = out.with_suffix(".toml")
    file.write_text(PLAN, encoding="utf-8")
    plan = read_plan("cogbench", file)
    file.unlink()
    models = ["openai:model-with-a-long-name-2026", "openai:other", "openai:never-answered"]
    begin(out, plan, models, {}, {})
    for k, model in enumerate(models[:2]):
        for cell in plan.cells:
            run_folder = folder_of_cell(out, model, cell)
            run_folder.mkdir(parents=True)
            live(replace(plan, seed=5 + k), "rational", cell).save(run_folder / "trials.parquet")


def lived(out, contaminants):
    from knownminds.environments import InstrumentalLearning
    from knownminds.validation.costs.connect import run

    mind = {"truth": {"alpha": 0.4, "beta": 4.0}, "contaminants": contaminants}
    place = InstrumentalLearning(n_visits=6)
    run(place, "synthetic:rescorla_wagner", sessions=3, seed=2, out=out, **mind)


def run_all_fine(out):
    lived(out, None)


def run_with_gaps(out):
    from knownminds.agents import Contaminants

    lived(out, Contaminants(refusal=0.1, malformed=0.1, verbosity=0.2))


KINDS = {
    own.__name__: own
    for own in (
        recovery, surface, unfinished, confusion, calibration, power, smallest, sequential, models,
        design, audit, coherence, consistency, shortcuts, channel, fit, prior, budget, score,
        phenotype, magnitude, beliefs, revealed, benchmark, run_all_fine, run_with_gaps,
    )
}  # fmt: skip


def unpacked(kind, folder):
    """Return the kept folder of a kind, copied to where pages may be drawn."""
    with tarfile.open(KEPT / f"{kind}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return Path(folder) / kind


def keep(folder):
    """Pack a folder as it is kept: without what is drawn from it, and always the same."""
    KEPT.mkdir(parents=True, exist_ok=True)

    def plain(entry):
        if set(Path(entry.name).parts) & DRAWN:
            return None
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(KEPT / f"{folder.name}.tar.xz", "w:xz") as archive:
        archive.add(folder, folder.name, filter=plain)


if __name__ == "__main__":
    place, *asked = sys.argv[1:]
    for kind in asked or KINDS:
        made = Path(place) / kind
        shutil.rmtree(made, ignore_errors=True)
        KINDS[kind](made)
        keep(made)
        print(kind, (KEPT / f"{kind}.tar.xz").stat().st_size, flush=True)
