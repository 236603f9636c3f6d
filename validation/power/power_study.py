"""Power: how often a design detects an effect of a stated size, before anyone is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from time import process_time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS, Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Environment
from knownminds.environments.record.text_table import text_table
from knownminds.inference import FittedMeasure, Measure, identifiability
from knownminds.validation.engine.arguments import (
    check_truth,
    one_of,
    resolve_environment,
    resolve_model,
)
from knownminds.validation.engine.engine import read, run
from knownminds.validation.engine.group_law import checked_correlations
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import Batch, Cell, Rows, Study

from .aims import Aim, null_of
from .dials import resolve_measure
from .operating_characteristics import (
    COMPARISONS,
    ESTIMATORS,
    Characteristics,
    characteristics,
    dial_of,
    test_batch,
)
from .pilot import Pilot, check_not_stated, read_pilot
from .questions import PILOT, SIZES, AskPower, AskSequential, PowerQuestion

if TYPE_CHECKING:
    from knownminds.validation.costs.observed import Observed

Comparison = Literal["one", "between", "paired"]
Estimator = Literal["two_stage", "hierarchical"]
FITS_PER_BATCH = 512  # some 70 ms of fitting
READ_FROM = 0.9  # of the 95% intervals hold the truth where the size of an effect can be read


@dataclass(frozen=True)
class Power(Reported):
    """The outcome of a power study: one entry per design.

    Parameters
    ----------
    effect, effect_sd
        Size of the effect on the natural scale; if its sd is positive the effect is drawn for
        each data set, and power is the assurance over that prior.
    """

    study: Study
    measure: str
    comparison: str
    estimator: str
    effect: float
    effect_sd: float
    designs: tuple[Characteristics, ...]
    versions: Mapping[str, str]

    @property
    def seconds(self) -> float:
        """Computing time, summed over processes."""
        return sum(design.seconds for design in self.designs)

    @property
    def aim(self) -> Aim:
        """What is counted of the data sets."""
        return Aim.of(self.study.cells[0].options)

    @property
    def name(self) -> str:
        """What the share of the data sets is called."""
        return self.aim.name(self.effect_sd)

    def to_frame(self) -> pd.DataFrame:
        """One row per design; `power` is the share of data sets whose test rejects."""
        frame = pd.DataFrame([design.to_dict() for design in self.designs])
        return frame.rename(columns={"rejected": "power", "rejected_error": "power_error"})

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        cell = self.study.cells[0]
        return {
            "environment": cell.environment,
            "model": cell.model,
            "measure": self.measure,
            "comparison": self.comparison,
            "estimator": self.estimator,
            "effect": self.effect,
            "effect_sd": self.effect_sd,
            **self.aim.options,
            "replicates": self.study.replicates,
            "seed": self.study.seed,
            "attempted": sum(design.attempted for design in self.designs),
            "failed": sum(design.failed for design in self.designs),
            "designs": self.to_frame().to_dict("records"),
            "sampling_unit": " ".join(about_units(self.designs)),
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """One line per design, then what the sample is made of."""
        name = self.name
        lines = [f"{name} for {about_effect(self)}, {self.study.replicates} data sets per design"]
        of_tests = ("wrong sign", "exaggeration") if self.aim.tests else ()
        heads = ["subjects x sessions x trials", name, *of_tests, "95% width", "bias"]
        rows = [
            (
                " x ".join(map(str, size_of_design(d))),
                d.rejected,
                *((d.sign_error, d.exaggeration) if of_tests else ()),
                d.width,
                d.bias,
            )
            for d in self.designs
        ]
        if "dollars" in self.study.cells[0].options:
            heads.append("dollars")
            priced = zip(rows, self.designs, strict=True)
            rows = [(*row, dollars_told(design)) for row, design in priced]
        lines += text_table(heads, rows)
        lines += about_design(self.designs[0].cell)
        lines += about_losses(self.designs)
        lines += [about_reading(d) for d in self.designs if not can_be_read(d)]
        return "\n".join([*lines, *about_units(self.designs), "(Monte-Carlo errors)"])


def about_effect(power: Power) -> str:
    """Say which effect is looked for, and how."""
    cell = power.study.cells[0]
    size = f"{power.effect:g}"
    if power.effect_sd:
        size = f"{size} (drawn with sd {power.effect_sd:g})"
    where = {
        "one": f"{power.measure} = {size}",
        "between": f"a difference in {power.measure} of {size} between two groups",
        "paired": f"a difference in {power.measure} of {size} between two conditions",
    }[power.comparison]
    return f"{where}, {cell.model} in {cell.environment}, {power.estimator.replace('_', '-')} test"


def about_design(cell: Cell) -> list[str]:
    """Say what is counted, unless it is rejections, and what was taken from pilot and run."""
    from knownminds.validation.costs.observed import about_run  # its room sees this one

    aim, pilot = Aim.of(cell.options), Pilot.of(cell)
    measure = resolve_measure(cell.options["measure"], AGENTS[cell.model])
    meaning = aim.meaning(null_of(measure, cell.options["comparison"]))
    run = [about_run(cell.options["run"])] if "run" in cell.options else []
    return [*([meaning] if meaning else []), *(pilot.sentences if pilot else []), *run]


def dollars_told(design: Characteristics) -> str:
    """Write down what all sessions of a design cost."""
    low, high = design.cell.options["dollars"]
    return f"{low:.4g} to {high:.4g}"


def about_unit(design: Characteristics) -> str:
    """Name the sampling unit in a sentence."""
    if design.unit == "repeat":
        return (
            "The sampling unit is a repeat: sessions of one mind. The test speaks about that mind "
            "(one language model at one temperature), not about others."
        )
    return (
        "The sampling unit is a participant; its sessions are repeats and are fitted together. "
        "Seeds of one language model are repeats, not participants."
    )


def about_failures(design: Characteristics) -> str:
    """Say how many data sets gave no estimate, and why."""
    why = "; ".join(f"{n} x {message}" for message, n in design.messages.items())
    return f"{design.failed} of {design.attempted} data sets failed and count as misses: {why}"


def can_be_read(design: Characteristics) -> bool:
    """Say whether the size of the effect can be read: unless its intervals clearly cover less."""
    return not design.coverage.value + 2 * design.coverage.error < READ_FROM


def about_reading(design: Characteristics) -> str:
    """Say why the size of an effect cannot be read from a design."""
    size = " x ".join(map(str, size_of_design(design)))
    return (
        f"{size} (subjects, sessions, trials): 95% intervals hold the true effect in "
        f"{design.coverage} of the data sets, and the estimate is off by {design.bias}. A test "
        "that rejects says here that there is something, not how large it is."
    )


def size_of_design(design: Characteristics) -> tuple[int, int, int]:
    """Return subjects, sessions and trials."""
    return design.cell.subjects, design.cell.sessions, design.trials


def about_losses(designs: Sequence[Characteristics]) -> list[str]:
    """Say in which designs data sets failed or are doubtful, and why."""
    told = []
    for design in designs:
        size = " x ".join(map(str, size_of_design(design)))
        if design.failed:
            told.append(f"{size} (subjects, sessions, trials): {about_failures(design)}")
        for message, n in list(design.doubts.items())[:2]:
            why = f"{n} of {design.attempted} data sets: {message}"
            told.append(f"{size} (subjects, sessions, trials): {why}")
    return told


def about_units(designs: Sequence[Characteristics]) -> list[str]:
    """Name the sampling unit; it differs between designs of one mind and of several."""
    units = {design.unit: about_unit(design) for design in designs}
    if len(units) == 1:
        return list(units.values())
    of = {"repeat": "one mind", "participant": "several subjects"}
    return [f"Designs of {of[unit]}: {told}" for unit, told in units.items()]


power = verb(AskPower, __name__)


def compute(question: AskPower) -> Power:
    """Answer what `power` is asked."""
    sought = sought_in(question)
    sizes = {name: several(getattr(question, name)) for name in SIZES}
    cells = sought.cells(sizes["subjects"], sizes["sessions"], sizes["trials"], question.effect_sd)
    sought.check_identified(sizes["trials"])
    lengths = [cell.make().n_trials for cell in cells[: len(sizes["trials"])]]
    asked = question.asked() | sizes | {"trials": lengths, "effect": sought.effect}
    study = Study("power", cells, question.replicates, question.seed, "replicate", asked)
    check_step_loop(study)
    if question.tell is not None and sought.estimator == "hierarchical":
        question.tell(price_of(study))
    return run(study, test_batch, summarise, **question.running)


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


def read_power(folder: str | os.PathLike[str]) -> Power:
    """Read a finished power study from its folder; nothing is computed anew."""
    return read(folder, "power", summarise)


def summarise(rows: Rows) -> Power:
    """Gather the designs of a finished study."""
    study = rows.study
    cell = study.cells[0]
    return Power(
        study=study,
        measure=cell.options["measure"],
        comparison=cell.options["comparison"],
        estimator="hierarchical" if cell.method == "hierarchical" else "two_stage",
        effect=cell.law["effect"],
        effect_sd=cell.law["effect_sd"],
        designs=tuple(characteristics(rows, c) for c in range(len(study.cells))),
        versions=rows.versions,
    )


@dataclass(frozen=True)
class Sought:
    """What is looked for, whatever the size of the design."""

    environment: Environment
    model: type[Agent]
    measure: Measure
    size: float
    comparison: str
    estimator: str
    truth: Mapping[str, float]
    spread: Mapping[str, float]
    correlation: Mapping[str, float] = field(default_factory=dict)
    pilot: Pilot | None = None
    own_sd: float | None = None  # of the effect over the pilot's draws, where it is the pilot's own
    aim: Aim = field(default_factory=Aim)
    observed: Observed | None = None

    @property
    def effect(self) -> dict[str, float | str]:
        """The measure and its size."""
        return {self.measure.name: self.size if self.own_sd is None else PILOT}

    def cells(
        self,
        subjects: Sequence[Any],
        sessions: Sequence[Any],
        trials: Sequence[Any],
        effect_sd: float = 0.0,
        mark: Mapping[str, Any] | None = None,
    ) -> tuple[Cell, ...]:
        """Write down each combination; `mark` gives the data sets numbers of their own."""
        for name, grid in (("subjects", subjects), ("sessions", sessions), ("trials", trials)):
            if len(grid) == 0:
                raise ValueError(f"A design needs a number of {name}; got none.")
        if not 0 <= effect_sd < np.inf:
            raise ValueError(f"effect_sd is a number from 0 on; got {effect_sd:g}.")
        return tuple(
            self._cell(n, k, length, effect_sd, mark or {})
            for n, k, length in product(subjects, sessions, trials)
        )

    def check_identified(self, trials: Sequence[Any]) -> None:
        """Raise ValueError if the effect cannot be, or sessions of these trials cannot tell it."""
        measure = self.measure
        dial = dial_of(self.cells([2], [1], [None])[0], measure)
        dial.turn_to(np.array([self.size + (0.0 if self.comparison == "one" else dial.rest)]))
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

    def _cell(
        self,
        subjects: int,
        sessions: int,
        trials: int | None,
        effect_sd: float,
        mark: Mapping[str, Any],
    ) -> Cell:
        if min(subjects, sessions) < 1:
            raise ValueError(f"Subjects and sessions are at least 1; got {subjects}, {sessions}.")
        if subjects * sessions < 2:
            raise ValueError("A test needs 2 units: several sessions of one mind, or subjects.")
        if self.comparison == "paired" and subjects == 1:
            raise ValueError(
                "Pairs are the two conditions of a subject; one mind's sessions form none. Use "
                "several subjects, or the comparison between."
            )
        parameters = self.model.parameters
        mean = dict(zip(parameters.names, parameters.mean.tolist(), strict=True))
        for name, value in self.truth.items():
            support = parameters[name].support
            mean[name] = float(support.unconstrain(np.asarray(value, dtype=float)))
            if not np.isfinite(mean[name]):
                raise ValueError(
                    f"The middle of a group lies inside {support}, not at its end; got "
                    f"{name} = {value:g}."
                )
        sds = {p.name: float(self.spread.get(p.name, p.group_sd)) for p in parameters}
        if subjects == 1:
            sds = dict.fromkeys(sds, 0.0)
        law: dict[str, Any] = {"group_mean": mean, "group_sd": sds}
        law |= {"effect": self.size, "effect_sd": effect_sd}
        if self.pilot is not None:
            if subjects == 1:
                raise ValueError(
                    "A pilot speaks about participants, and one mind is none; got 1 subject. Add "
                    "--subjects."
                )
            law |= self.pilot.law()
        if self.own_sd is not None:
            law |= {"effect_sd": self.own_sd, "own_effect": True}
        if self.correlation:
            law["correlation"] = dict(self.correlation)
        environment = resolve_environment(self.environment, trials)
        return Cell(
            environment.name,
            environment.settings,
            self.model.name,
            law=law | dict(mark),
            sessions=sessions,
            subjects=subjects,
            method="hierarchical" if self.estimator == "hierarchical" else "map",
            options={
                "measure": self.measure.name,
                "comparison": self.comparison,
                **self.aim.options,
                **self._priced(environment, subjects, sessions),
            },
            batch=_batch(subjects * sessions, self.estimator),
        )

    def _priced(self, environment: Environment, subjects: int, sessions: int) -> dict[str, Any]:
        """Say what all sessions of a design cost, if a run says what one takes."""
        if self.observed is None:
            return {}
        n = subjects * sessions * (1 if self.comparison == "one" else 2)
        dollars = self.observed.dollars_of(environment, self.model, n)
        ends = [float(dollars.low), float(dollars.high)]
        return {"dollars": ends, "run": self.observed.told()}


def _batch(fits: int, estimator: str) -> int:
    return 1 if estimator == "hierarchical" else max(1, FITS_PER_BATCH // fits)


def several(values: Any) -> list[Any]:
    """Return one value or several as a list."""
    return list(values) if isinstance(values, Sequence) else [values]


def sought_in(question: PowerQuestion[Any]) -> Sought:
    """Check what a power study is asked, and write it down."""
    environment, agent = resolve_environment(question.environment), resolve_model(question.model)
    comparison, estimator = question.comparison, question.estimator
    agent.check_plays(environment)
    one_of("comparison", comparison, COMPARISONS)
    one_of("estimator", estimator, ESTIMATORS)
    if len(question.effect) != 1:
        raise ValueError(f"An effect is one measure and its size; got {dict(question.effect)}.")
    ((name, size),) = question.effect.items()
    measure = resolve_measure(name, agent, environment)
    pilot = _pilot_of(question, environment, agent)
    own = None
    if size == PILOT:
        own = _own_sizes(question, pilot, measure)
        size = float(own.mean())
    if isinstance(size, str):
        raise ValueError(f"The size of an effect is a number or {PILOT!r}; got {name} = {size!r}.")
    if not np.isfinite(size):
        raise ValueError(f"The size of an effect is a number; got {name} = {size:g}.")
    held = check_truth(agent.parameters, question.truth)
    for parameter, sd in (question.spread or {}).items():
        agent.parameters.index(parameter)
        if not 0 <= sd < np.inf:
            raise ValueError(f"The spread of {parameter} is a number from 0 on; got {sd:g}.")
    aim = Aim(question.width, question.rope)
    if comparison == "one" and not np.isfinite(measure.null) and aim.width is None:
        raise ValueError(
            f"{measure.name} has no null value to be tested against; compare two conditions "
            "(between or paired), or name a measure."
        )
    if estimator == "hierarchical" and not isinstance(measure, FittedMeasure):
        raise ValueError(
            f"A hierarchical test is of a contrast of parameters; {measure.name} is none. "
            "Use two_stage."
        )
    spread = dict(question.spread or {})
    known = checked_correlations(agent, question.correlation, {})
    if known and not isinstance(measure, FittedMeasure):
        raise ValueError(
            "How large an effect is where parameters go together is known of parameters alone; "
            f"{measure.name} is none. Leave --correlation out."
        )
    if pilot is not None and own is None:
        pilot.check_reaches(measure, size, comparison != "one")
    own_sd = None if own is None else float(own.std(ddof=1))
    return Sought(
        environment,
        agent,
        measure,
        float(size),
        comparison,
        estimator,
        held,
        spread,
        known,
        pilot,
        own_sd,
        aim,
        _observed(question, environment),
    )


def _observed(question: PowerQuestion[Any], environment: Environment) -> Observed | None:
    """Read the run by which sessions are priced, if there is one."""
    if question.run is None:
        return None
    if isinstance(question, AskSequential):
        raise ValueError("The cost of a stopping rule is told in units; leave --run out.")
    from knownminds.validation.costs.observed import Observed

    found = Observed.read(question.run, question.seed)
    found.priced()
    if found.place.name != environment.name:
        raise ValueError(
            f"Sessions are priced by a run of the same experiment; {question.run} is of "
            f"{found.place.name}, and the study of {environment.name}."
        )
    return found


def _pilot_of(
    question: PowerQuestion[Any], environment: Environment, agent: type[Agent]
) -> Pilot | None:
    """Read the pilot of a study, if it has one; what would contradict it is refused."""
    if question.pilot is None:
        if question.unconverged:
            raise ValueError("--unconverged is said of a pilot; add --from FIT.")
        return None
    if isinstance(question.pilot, Pilot):
        return question.pilot
    if isinstance(question, AskSequential):
        raise ValueError("A stopping rule is studied with a stated group; leave --from out.")
    stated = {"--set": question.truth, "--spread": question.spread}
    check_not_stated(stated | {"--correlation": question.correlation})
    return read_pilot(question.pilot, environment.name, agent, question.unconverged)


def _own_sizes(question: PowerQuestion[Any], pilot: Pilot | None, measure: Measure) -> Array:
    """Return the effects that the pilot holds possible, [draws]."""
    if pilot is None:
        raise ValueError(f"An effect {PILOT!r} is that of a pilot; add --from FIT.")
    if question.comparison != "one":
        raise ValueError(
            "A pilot of one group knows no difference between two; state its size, NAME=SIZE."
        )
    if question.effect_sd:
        raise ValueError("The pilot's own effect has its own spread; leave --effect-sd out.")
    return pilot.sizes(measure)
