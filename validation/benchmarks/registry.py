"""Which benchmarks there are, and what the page of each is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from knownminds.environments import Environment, unknown
from knownminds.validation.pages.page import Section
from knownminds.validation.studies import load

PLANS = Path(__file__).parent / "plans"
# Columns of a benchmark's trials beside the conditions: who answered, a model or a known mind;
# whether it is a known mind; the cell, "EXPERIMENT" or "EXPERIMENT/VARIANT"; and its variant.
PARTICIPANT, KNOWN, CELL, VARIANT = "participant", "known_mind", "cell", "variant"


@dataclass(frozen=True, eq=False)
class About:
    """What a page can be made of besides trials.

    Parameters
    ----------
    places
        The experiment of each cell with its settings, by name of the cell.
    participants
        Everybody, models first, also who has no readable answer at all.
    known
        Those among them that are known minds, the references.
    truth
        Of known minds by name and cell: the model and its parameters, `{"model": "random_rater",
        "bias": 0.5}`.
    features
        A CSV file with what is known of the models, in rows `participant`; None without.
    people
        A CSV file with reference values of people, columns metric and value; None without.
    paraphrases
        How many templates each experiment was asked with.
    seed
        Of what is drawn to compute, such as bootstraps.
    context
        Of revealed belief, the context that is drawn for everybody; "" for the page's own choice.
    kept
        A folder for what takes long to compute and hangs on the plan alone; None for none.
    """

    places: Mapping[str, Environment]
    participants: tuple[str, ...]
    known: tuple[str, ...] = ()
    truth: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    features: Path | None = None
    people: Path | None = None
    paraphrases: int = 1
    seed: int = 0
    context: str = ""
    kept: Path | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Participants that are no known minds."""
        return tuple(name for name in self.participants if name not in self.known)


# From all trials of all participants, one row each, and what is known of them. The columns are
# those of `validation.data.trials_of_runs.CONDITIONS`, the four above, and the experiments' own;
# those of other experiments are empty. The first sections are the paper's, in its order.
Sections = Callable[[pd.DataFrame, About], list[Section]]
# From the same, what participants are compared by: one row per participant and score, with the
# columns participant, score, cell, value, standard_error and freedom (the degrees of freedom of
# the standard error; NaN where it counts as known).
Scores = Callable[[pd.DataFrame, About], pd.DataFrame]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark.

    Parameters
    ----------
    name, title, paper
        Its name on the command line, and of its plan; the head of its page; whom it is from.
    made_by
        The function that makes its page, "room.module:sections", see `Sections`; the module has
        `scores` too, see `Scores`.
    made_ahead
        The function that computes what hangs on the plan alone, see `ahead`; "" for none.
    """

    name: str
    title: str
    paper: str
    made_by: str
    made_ahead: str = ""

    @property
    def plan(self) -> Path:
        """The plan that ships."""
        return PLANS / f"{self.name}.toml"

    @property
    def sections(self) -> Sections:
        """The function that makes its page."""
        found: Sections = load(self.made_by)
        return found

    @property
    def scores(self) -> Scores:
        """The function that gives what participants are compared by, without a page."""
        found: Scores = load(f"{self.made_by.partition(':')[0]}:scores")
        return found

    @property
    def ahead(self) -> Callable[[pd.DataFrame, About], None] | None:
        """What computes, from known minds' trials, what no page should have to wait for, or None.

        It leaves that in the folder `kept` of what it is told.
        """
        room, _, name = self.made_ahead.partition(":")
        return load(f"{room}:{name}") if name else None


BENCHMARKS: dict[str, Benchmark] = {
    one.name: one
    for one in (
        Benchmark(
            "cogbench",
            "CogBench: seven experiments, ten behavioural metrics",
            "Coda-Forno, Binz, Wang and Schulz 2024",
            "benchmarks.cogbench:sections",
        ),
        Benchmark(
            "colliders",
            "Colliders: causal judgements, and the networks behind them",
            "Dettki 2025; tasks of Rehder and Waldmann 2017",
            "benchmarks.colliders:sections",
        ),
        Benchmark(
            "magnitudes",
            "Magnitudes: estimates from words, pictures and both",
            "BayesBench",
            "benchmarks.magnitudes:sections",
        ),
        Benchmark(
            "diagnosis",
            "Diagnosis: do decisions follow from beliefs?",
            "Yamin et al.",
            "benchmarks.diagnosis:sections",
            "benchmarks.diagnosis:ahead",
        ),
        Benchmark(
            "revealed_belief",
            "Revealed belief: what continuations say of chances",
            "Mondal and others 2024, on revealed beliefs and stated answers",
            "benchmarks.revealed_belief:sections",
        ),
    )
}


def benchmark_of(name: str) -> Benchmark:
    """Return a benchmark by name; ValueError names the nearest ones if there is none."""
    if name not in BENCHMARKS:
        raise ValueError(unknown("benchmark", name, BENCHMARKS))
    return BENCHMARKS[name]
