"""Power: how often a design detects an effect of a stated size, before data are collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.environments import Environment
from knownminds.inference import FittedMeasure, Measure, identifiability
from knownminds.validation.engine.arguments import check_truth, resolve_environment, several
from knownminds.validation.engine.cells import Cell, CellAnalysis, Population
from knownminds.validation.engine.drawn_groups import checked_correlations
from knownminds.validation.engine.engine import run
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import SIZES
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.study import Batch, Rows, Study
from knownminds.validation.engine.verdicts import Verdict, not_judged, reason
from knownminds.validation.pages.views import Curves, against_size, size_text

from .aims import Aim
from .dials import resolve_measure
from .operating_characteristics import characteristics, dial_of, estimator_of, said, test_batch
from .pilot import Pilot, pilot_of
from .questions import PILOT, Power

if TYPE_CHECKING:
    from knownminds.validation.costs.observed import Observed

FITS_PER_BATCH = 512  # some 70 ms of fitting
READ_FROM = 0.9  # of the 95% intervals hold the truth where the size of an effect can be read
USUAL = 0.8  # the power that designs are mostly planned for
REPLICATES = 400
NOTES = (
    "Monte-Carlo standard errors in parentheses. power, assurance: share of all data sets whose "
    "test rejects at 5%; precision: of those whose 95% interval is narrower than --width; "
    "equivalence: of those whose 90% interval lies within --rope of the null value, two one-sided "
    "tests at 5% (Schuirmann 1987). Data sets that failed count as misses. wrong sign and "
    "exaggeration (mean estimated over mean true size) are those of the data sets that reject "
    "(Gelman and Carlin 2014).",
    "The sampling unit of a design of one subject is a repeat: sessions of one agent. The test "
    "speaks about that agent (one language model at one temperature), not about others. Else it is "
    "a participant, whose sessions are repeats and are fitted together; seeds of one language "
    "model are repeats, not participants.",
    "A contrast of parameters over several participants is the mean of the group, by its "
    "marginal likelihood. sampled: data sets whose group that could not estimate, so that it was "
    "sampled as --estimator hierarchical does.",
    f"Where 95% intervals clearly cover less than {READ_FROM:.0%}, a test that rejects says that "
    "there is something, not how large it is: the size of the effect is not confirmed.",
)


def with_single_sizes(question: Power) -> Power:
    """Return the question with numbers where lists of one number stand."""
    sizes = {name: several(getattr(question, name))[0] for name in SIZES}
    return replace(question, **sizes)


def designs(question: Power) -> Result:
    """Study every combination of the sizes."""
    sought = effect_search(question)
    sizes = {name: several(getattr(question, name)) for name in SIZES}
    cells = sought.cells(sizes["subjects"], sizes["sessions"], sizes["trials"])
    sought.check_identified(sizes["trials"])
    lengths = [cell.make().n_trials for cell in cells[: len(sizes["trials"])]]
    replicates = question.replicates or REPLICATES
    options = question.option_values() | sizes | {"trials": lengths, "effect": sought.effect}
    options |= {"replicates": replicates}
    study = Study("power", cells, replicates, question.seed, "replicate", options)
    check_step_loop(study)
    if question.tell is not None and question.estimator == "hierarchical":
        question.tell(price_of(study))
    return run(study, test_batch, say, question)


def price_of(study: Study) -> str:
    """Sample a data set of the largest design, and say what all of them will take."""
    sizes = [cell.subjects * cell.sessions * cell.make().n_trials for cell in study.cells]
    largest = int(np.argmax(sizes))
    test_batch(study, Batch(largest, 0, 1), 1)  # compiles
    begin = process_time()
    test_batch(study, Batch(largest, 0, 1), 1)
    seconds = process_time() - begin
    n = study.replicates * len(study.cells)
    subjects = study.cells[largest].subjects
    return (
        f"To sample a data set of {subjects} subjects takes {seconds:.1f} s of CPU: "
        f"{n:,} data sets, some {n * seconds / 60:.0f} minutes, shared by the workers."
    )


def say(rows: Rows) -> Result:
    """Say what becomes of the data sets of each design."""
    study, table = rows.study, []
    for number, cell in enumerate(study.cells):
        cell_rows = rows.of(number)
        if len(cell_rows):
            table.append({**_described(cell), **characteristics(cell, cell_rows), **_dollars(cell)})
    title = title_of(study.question)
    if not table:
        return rows.result(title)
    frame = pd.DataFrame(table)
    step = study.cells[0].step
    part = ["One step of a search for the smallest design."] if step else []
    name, (across, drawn) = share_name(frame), against_size(frame)
    curves = Curves(
        "Against the size of the design, with 2 standard errors. Dashed: 0.8, and 1.",
        (across, ""), across, (name, "95% width", "exaggeration"), series=("design",),
        limits={name: (USUAL,), "exaggeration": (1.0,)}, shares=(name,), ticks=True,
    )  # fmt: skip
    return rows.result(
        title,
        verdicts=readings(frame),
        of="data sets",
        tables={"Designs": frame.set_index(list(SIZES))},
        shows=(name, "subjects in all", "95% width", "95% covers", "failed", "left out"),
        figures=curves.drawings(drawn) if len(frame) > 1 else {},
        notes=[*part, *notes_of(study.cells[0]), *NOTES],
        options={**study.options, "analysis": said(study.cells)},
    )


def readings(frame: pd.DataFrame) -> dict[str, Verdict]:
    """Judge in each design whether the size of the effect can be read."""
    verdicts = {}
    for row in frame.to_dict("records"):
        verdicts[f"size of the effect, {size_text(row, frame)}"] = reading(row["95% covers"])
    return verdicts


def reading(covers: Score) -> Verdict:
    """Judge by the coverage of 95% intervals whether the size of the effect can be read."""
    if np.isnan(covers.value):
        return not_judged("no estimates")
    text = reason("95% intervals cover", covers.value, covers.error, READ_FROM)
    clearly = covers.value + 2 * covers.error < READ_FROM
    return Verdict("not confirmed" if clearly else "confirmed", (text,))


def size_of(cell: Cell) -> dict[str, int]:
    """Return subjects, sessions and trials of a design."""
    return dict(zip(SIZES, (cell.subjects, cell.sessions, cell.make().n_trials), strict=True))


def _described(cell: Cell) -> dict[str, int]:
    """Return the sizes of a design; of two groups, subjects per group and in all."""
    between = cell.analysis.comparison == "between" and cell.subjects > 1
    return {**size_of(cell), **({"subjects in all": 2 * cell.subjects} if between else {})}


def _dollars(cell: Cell) -> dict[str, float]:
    """Return what all sessions of a design cost, where a run says what one takes."""
    return dict(zip(("dollars low", "dollars high"), cell.analysis.dollars, strict=False))


def title_of(question: Mapping[str, Any], find: str = "") -> str:
    """Return the question: how often designs find an effect, or how many of `find` do."""
    effect = " and ".join(f"{name} = {size}" for name, size in question["effect"].items())
    if question["comparison"] != "one":
        effect = f"a difference of {effect}"
    if question.get("width") is not None:
        width = f"{question['width']:g}"
        if find:
            return f"How many {find} make the 95% interval of {effect} narrower than {width}?"
        return f"How often is the 95% interval of {effect} narrower than {width}?"
    if question.get("rope") is not None:
        if find:
            return f"How many {find} show {effect} to be negligible?"
        return f"How often is {effect} shown to be negligible?"
    return f"How many {find} detect {effect}?" if find else f"How often is {effect} detected?"


def notes_of(cell: Cell) -> list[str]:
    """Return fixed texts on where groups and prices come from."""
    notes = []
    if (pilot := Pilot.of(cell)) is not None:
        notes.append(
            "The group of each data set is a draw from the posterior of the pilot, and as many "
            "answers are lost at random as the pilot lacks: numbers are averaged over what the "
            "pilot leaves open. Model and settings are the pilot's where no others were named."
        )
    if pilot is not None and pilot.second is not None:
        apart = "their difference is the pilot's" if cell.population.own_effect else (
            "the second is as far from it as was stated"
        )  # fmt: skip
        notes.append(
            f"The pilot was fitted with {pilot.formula}, of {' and '.join(pilot.groups)}. The "
            f"first group is like {pilot.groups[0]}, and {apart}."
        )
    if cell.analysis.run:
        notes.append("Dollars go by what the run took: tokens and money of its sessions.")
    return notes


def share_name(designs: pd.DataFrame) -> str:
    """Return what the share that reaches the aim is called: the column after "data sets"."""
    columns = list(designs.columns)
    return str(columns[columns.index("data sets") + 1])


@dataclass(frozen=True)
class EffectSearch:
    """What is looked for, whatever the size of the design: the options, checked.

    Parameters
    ----------
    size : Of the effect; the mean over the pilot's draws where it is the pilot's.
    own_sd : Of the effect over the pilot's draws, where it is the pilot's; None elsewhere.
    """

    question: Power
    environment: Environment
    model: type[Model]
    measure: Measure
    size: float
    correlation: Mapping[str, float] = field(default_factory=dict)
    pilot: Pilot | None = None
    own_sd: float | None = None
    observed: Observed | None = None

    @property
    def effect(self) -> dict[str, float | str]:
        """The measure and its size."""
        return {self.measure.name: self.size if self.own_sd is None else PILOT}

    @property
    def aim(self) -> Aim:
        """What is counted of data sets."""
        return Aim(self.question.width, self.question.rope)

    def cells(
        self,
        subjects: Sequence[Any],
        sessions: Sequence[Any],
        trials: Sequence[Any],
        step: str = "",
        common: int | None = None,
    ) -> tuple[Cell, ...]:
        """Return every combination; `step` gives the data sets random numbers of their own."""
        for name, grid in (("subjects", subjects), ("sessions", sessions), ("trials", trials)):
            if len(grid) == 0:
                raise ValueError(f"A design needs a number of {name}; got none.")
        return tuple(
            replace(self._cell(n, k, length), step=step, common=common)
            for n, k, length in product(subjects, sessions, trials)
        )

    def check_identified(self, trials: Sequence[Any]) -> None:
        """Raise ValueError if the effect cannot be, or sessions of these trials cannot tell it."""
        measure = self.measure
        dial = dial_of(self.cells([2], [1], [None])[0], measure)
        dial.turn_to(
            np.array([self.size + (0.0 if self.question.comparison == "one" else dial.rest)])
        )
        if not isinstance(measure, FittedMeasure):
            return
        parameters = measure.model.parameters
        middle = parameters.slope(parameters.constrain(parameters.mean))
        slope = dict(zip(parameters.names, middle.tolist(), strict=True))
        weights = {name: weight * slope[name] for name, weight in measure.contrast.items()}
        for length in trials:
            environment = resolve_environment(self.environment, length)
            known = identifiability(measure.model, environment)
            if not known.estimable(weights):
                raise ValueError(
                    f"Sessions of {environment.n_trials} trials cannot identify {measure.name} "
                    f"({'; '.join(known.sentences)}). Change the experiment's settings, or look "
                    "for another effect."
                )

    def _cell(self, subjects: int, sessions: int, trials: int | None) -> Cell:
        if min(subjects, sessions) < 1:
            raise ValueError(f"Subjects and sessions are at least 1; got {subjects}, {sessions}.")
        if subjects * sessions < 2:
            raise ValueError("A test needs 2 units: several sessions of one agent, or subjects.")
        if self.question.comparison == "paired" and subjects == 1:
            raise ValueError(
                "Pairs are the two conditions of a subject; one agent's sessions form none. Use "
                "several subjects, or the comparison between."
            )
        parameters = self.model.parameters
        mean = dict(zip(parameters.names, parameters.mean.tolist(), strict=True))
        for name, value in (self.question.truth or {}).items():
            support = parameters[name].support
            mean[name] = float(support.unconstrain(np.asarray(value, dtype=float)))
            if not np.isfinite(mean[name]):
                raise ValueError(
                    f"The middle of a group lies inside {support}, not at its end; got "
                    f"{name} = {value:g}."
                )
        spread = self.question.spread or {}
        sds = {p.name: float(spread.get(p.name, p.group_sd)) for p in parameters}
        if subjects == 1:
            sds = dict.fromkeys(sds, 0.0)
        population = Population(group_mean=mean, group_sd=sds)
        if self.pilot is not None:
            if subjects == 1:
                raise ValueError(
                    "A pilot speaks about participants, and one agent is none; got 1 subject. Add "
                    "--subjects."
                )
            population = self.pilot.population
        own = self.own_sd is not None
        population = replace(
            population,
            effect=self.size,
            effect_sd=self.own_sd if own else self.question.effect_sd,
            own_effect=own,
            correlation=dict(self.correlation),
        )
        environment = resolve_environment(self.environment, trials)
        return Cell(
            environment.name,
            environment.settings,
            self.model.name,
            population=population,
            sessions=sessions,
            subjects=subjects,
            method=self._method(subjects),
            analysis=CellAnalysis(
                measure=self.measure.name,
                comparison=self.question.comparison,
                width=self.aim.width,
                rope=self.aim.rope,
                **self._priced(environment, subjects, sessions),
            ),
            batch=_batch(subjects * sessions, self._method(subjects)),
        )

    def _method(self, subjects: int) -> str:
        """Return how the contrast is estimated: of one agent, and of other measures, by "map"."""
        question = self.question
        if question.stop is not None:
            return "map"
        return estimator_of(self.measure, subjects, question.estimator)

    def _priced(self, environment: Environment, subjects: int, sessions: int) -> dict[str, Any]:
        """Say what all sessions of a design cost, if a run says what one takes."""
        if self.observed is None:
            return {}
        n = subjects * sessions * (1 if self.question.comparison == "one" else 2)
        dollars = self.observed.dollars_of(environment, self.model, n)
        ends = [float(dollars.low), float(dollars.high)]
        return {"dollars": ends, "run": self.observed.as_dict()}


def _batch(fits: int, method: str) -> int:
    if method == "hierarchical":
        return 1
    return max(1, FITS_PER_BATCH // fits // (4 if method == "marginal" else 1))


def effect_search(question: Power) -> EffectSearch:
    """Check the options of a power study, and write it down."""
    environment, agent = resolve_environment(question.environment), question.agent
    comparison, estimator = question.comparison, question.estimator
    agent.check_plays(environment)
    effect = dict(question.effect or {})
    if len(effect) != 1:
        raise ValueError(f"An effect is one measure and its size; got {effect}.")
    ((name, size),) = effect.items()
    measure = resolve_measure(name, agent, environment)
    pilot = _pilot_of(question, environment, agent)
    spread = None
    if size == PILOT:
        spread = _own_sizes(question, pilot, measure)
        size = float(spread.mean())
    if isinstance(size, str):
        raise ValueError(f"The size of an effect is a number or {PILOT!r}; got {name} = {size!r}.")
    if not np.isfinite(size):
        raise ValueError(f"The size of an effect is a number; got {name} = {size:g}.")
    check_truth(agent.parameters, question.truth)
    if not 0 <= question.effect_sd < np.inf:
        raise ValueError(f"effect_sd is a number from 0 on; got {question.effect_sd:g}.")
    for parameter, sd in (question.spread or {}).items():
        agent.parameters.index(parameter)
        if not 0 <= sd < np.inf:
            raise ValueError(f"The spread of {parameter} is a number from 0 on; got {sd:g}.")
    aim = Aim(question.width, question.rope)
    if comparison == "one" and not np.isfinite(measure.null) and aim.width is None:
        raise ValueError(
            f"{measure.name} has no null value to be tested against; compare two conditions "
            "(--comparison between or paired), or name a measure that has one."
        )
    if estimator == "hierarchical" and not isinstance(measure, FittedMeasure):
        raise ValueError(
            f"A hierarchical test is of a contrast of parameters; {measure.name} is none. "
            "Leave --estimator out."
        )
    known = checked_correlations(agent, question.correlation, {})
    if known and not isinstance(measure, FittedMeasure):
        raise ValueError(
            "How large an effect is where parameters go together is known of parameters alone; "
            f"{measure.name} is none. Leave --correlation out."
        )
    if pilot is not None and spread is None:
        pilot.check_reaches(measure, size, comparison != "one")
    return EffectSearch(
        question,
        environment,
        agent,
        measure,
        float(size),
        known,
        pilot,
        None if spread is None else float(spread.std(ddof=1)),
        _observed(question, environment),
    )


def _observed(question: Power, environment: Environment) -> Observed | None:
    """Read the run by which sessions are priced, if there is one."""
    if question.run is None:
        return None
    if question.stop is not None:
        raise ValueError("The cost of a stopping rule is in units; leave --run out.")
    from knownminds.validation.costs.observed import Observed

    observed = Observed.read(question.run, question.seed)
    observed.priced()
    if observed.environment.name != environment.name:
        raise ValueError(
            f"Sessions are priced by a run of the same experiment; {question.run} is of "
            f"{observed.environment.name}, and the study of {environment.name}."
        )
    return observed


def _pilot_of(question: Power, environment: Environment, agent: type[Model]) -> Pilot | None:
    """Return the pilot of a study, if it has one; what would contradict it is refused."""
    if isinstance(question.pilot, Pilot):
        return question.pilot
    if question.pilot is not None and question.stop is not None:
        raise ValueError("A stopping rule is studied with a stated group; leave --from out.")
    stated = {"--set": question.truth, "--spread": question.spread}
    stated |= {"--correlation": question.correlation}
    between = question.comparison == "between"
    return pilot_of(
        question.pilot, question.unconverged, environment.name, [agent], stated, two_groups=between
    )


def _own_sizes(question: Power, pilot: Pilot | None, measure: Measure) -> Array:
    """Return the effects that the pilot holds possible, [draws]."""
    if pilot is None:
        raise ValueError(f"An effect {PILOT!r} is that of a pilot; add --from FIT.")
    if question.comparison != "one" and pilot.second is None:
        raise ValueError(
            "A pilot of one group knows no difference between two; state its size, NAME=SIZE, or "
            "fit it with a formula (alpha ~ group)."
        )
    if question.effect_sd:
        raise ValueError("The pilot's effect has its spread; leave --effect-sd out.")
    return pilot.sizes(measure)
