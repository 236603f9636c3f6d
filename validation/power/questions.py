"""What `power` and `audit` are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from knownminds.validation.completion import completes
from knownminds.validation.engine.question import (
    ExperimentQuestion,
    R,
    StudyQuestion,
    Typed,
    asks,
    frozen_question,
    option,
)
from knownminds.validation.options import (
    Correlation,
    Experiment,
    ExperimentOption,
    Model,
    Seed,
    Sessions,
    SeveralSessions,
    SeveralTrials,
    Subjects,
    Values,
)
from knownminds.validation.reading import (
    read_numbers,
    read_settings,
    read_texts,
    resolve_experiment,
)
from knownminds.validation.studies import AUDITS, load

if TYPE_CHECKING:
    from knownminds.agents import Agent
    from knownminds.environments import Environment

    from .audit import Audit
    from .model_power import ModelPower
    from .pilot import Pilot
    from .power_study import Power
    from .sequential import Sequential
    from .smallest_design import SmallestDesign

SIZES = ("subjects", "sessions", "trials")
PILOT = "pilot"  # as the size of an effect: the one that the pilot has
SEARCH = {
    "find": Typed(
        Annotated[
            str | None,
            typer.Option(help="sessions, subjects or trials: find the smallest number."),
        ],
        None,
    ),
    "target": Typed(Annotated[float, typer.Option(help="The power to reach, with --find.")], 0.8),
    "most": Typed(Annotated[int, typer.Option(help="The largest number to consider.")], 1000),
}
STOPPING = {
    "stop": Typed(
        Annotated[
            Path | None,
            typer.Option(help="A stopping rule (TOML): its errors, cost and bias."),
        ],
        None,
    ),
    "unit": Typed(
        Annotated[str, typer.Option(help="With --stop: sessions (of one mind) or subjects.")],
        "sessions",
    ),
}
MODEL_CRITERIA = ("aic", "bic")
MODELS = {
    "against": Typed(
        Annotated[
            list[str] | None,
            typer.Option(
                help="A rival of --model: how often the true one of them is best.",
                autocompletion=completes("models"),
            ),
        ],
        None,
    ),
    "criterion": Typed(
        Annotated[str, typer.Option(help="With --against: aic or bic.")],
        "bic",
    ),
}


def _read_effect(text: str) -> dict[str, Any]:
    """Read NAME=SIZE, or NAME=pilot."""
    found = read_texts("--effect", [text])
    return found if list(found.values()) == [PILOT] else read_numbers("--effect", [text])


@frozen_question
class PowerQuestion(ExperimentQuestion[R]):
    """How often designs detect an effect; see `AskPower` and `AskSmallest`."""

    command: ClassVar[str] = "power"
    help: ClassVar[str] = (
        "Ask how often a design detects an effect, or which is the smallest that does."
    )

    environment: Environment | str = asks(Experiment, kw_only=False)
    effect: Mapping[str, float | str] = option(
        str | None,
        "NAME=SIZE: a measure or a parameter, on the natural scale; with --from also NAME=pilot.",
        read=_read_effect,
        kw_only=False,
        untyped=None,
    )
    model: type[Agent] | str = asks(Model, default="rescorla_wagner_dual", untyped=None)
    comparison: Literal["one", "between", "paired"] = option(
        str, "one (against the null value), between or paired conditions.", default="one"
    )
    estimator: Literal["two_stage", "hierarchical"] = option(
        str, "two_stage or hierarchical.", default="two_stage"
    )
    subjects: Any = option(
        list[int] | None, "Participants; 1 (one mind) if not given.", default=None
    )
    sessions: Any = asks(SeveralSessions, default=None)
    trials: Any = asks(SeveralTrials, default=None)
    replicates: int = option(
        int | None,
        "Data sets per design; 400, or 1000 to confirm --find.",
        default=400,
        untyped=None,
    )
    effect_sd: float = option(float, "Spread of the effect: assurance.", default=0.0)
    truth: Mapping[str, float] | None = asks(Values, default=None, name="values")
    spread: Mapping[str, float] | None = option(
        list[str] | None,
        "NAME=SD between participants, unconstrained scale.",
        default=None,
        read=partial(read_numbers, "--spread"),
    )
    correlation: Mapping[str, float] | None = asks(
        Correlation, default=None, read=partial(read_numbers, "--correlation")
    )
    pilot: str | Path | Pilot | None = option(
        Path | None,
        "A hierarchical fit (its folder): groups are drawn from its posterior.",
        default=None,
        flag="--from",
    )
    unconverged: bool = option(
        bool,
        "With --from: go on with a posterior that did not converge.",
        default=False,
        flag="--unconverged",
    )
    run: str | Path | None = option(
        Path | None,
        "A run's folder: what its sessions took prices those of the designs.",
        default=None,
        flag="--run",
    )
    width: float | None = option(
        float | None,
        "Count data sets whose 95% interval is narrower (precision).",
        default=None,
    )
    rope: float | None = option(
        float | None,
        "Count data sets whose 90% interval lies so near the null value (equivalence).",
        default=None,
    )
    seed: int = asks(Seed, default=0)
    tell: Callable[[str], None] | None = None

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that were typed, and who is told the price of a long study."""
        return {**super().read(given), "tell": given.get("tell")}

    @classmethod
    def typed(cls) -> dict[str, Typed]:
        """Its own fields, and what is searched with --find."""
        found = super().typed()
        seed = found.pop("seed")
        return {**found, **SEARCH, **STOPPING, **MODELS, "seed": seed}

    def asked(self) -> dict[str, Any]:
        """What was asked; a spread of zero is not named."""
        told = super().asked()
        told |= {"effect_sd": self.effect_sd or None, "spread": told["spread"] or {}}
        pilot = None if self.pilot is None else str(getattr(self.pilot, "folder", self.pilot))
        told |= {"run": None if self.run is None else str(self.run)}
        return told | {"correlation": told["correlation"] or None, "from": pilot}

    @classmethod
    def of_typed(cls, given: Mapping[str, Any]) -> ExperimentQuestion[Any]:
        """Ask for the smallest design with --find, else for the power of all designs."""
        if given["against"]:
            return AskModels.of_typed(given)
        if given["effect"] is None:
            raise ValueError(
                "Power is that of an effect, --effect NAME=SIZE, or of a comparison of models, "
                "--against MODEL; got neither."
            )
        if given["criterion"] != "bic":
            raise ValueError(
                "--criterion is said of models that are compared; add --against MODEL."
            )
        asked = cls.read(given)
        if given["find"] is None and given["stop"] is None:
            return AskPower(**asked)
        if given["find"] is not None and given["stop"] is not None:
            raise ValueError(
                "A study looks for a size or at a stopping rule; got --find and --stop."
            )
        way = "--find" if given["stop"] is None else "--stop"
        for name in SIZES:
            if len(asked.get(name, ())) > 1:
                raise ValueError(
                    f"With {way} the other sizes are single numbers; got {name} twice."
                )
        single = {name: asked[name][0] for name in SIZES if name in asked}
        if given["stop"] is not None:
            stopping = {"stop": str(given["stop"]), "unit": given["unit"]}
            return AskSequential(**asked | single | stopping)
        return AskSmallest(**asked | single | {name: given[name] for name in SEARCH})


@frozen_question
class AskPower(PowerQuestion["Power"]):
    """Ask how often designs detect an effect, for every combination of their sizes.

    Minds are Normal on the unconstrained scale around the group's mean. The effect is put in by
    turning the measure's dial, so that the group's mean of the measure on the natural scale (or
    its difference between the conditions) is what is asked. Designs of one mind (1 subject) test
    over sessions, others over subjects.

    Parameters
    ----------
    effect
        A measure, or a parameter of the model, and its size: {"optimism_bias": 0.1}.
    comparison
        "one" tests the measure against its null value, "between" two groups of `subjects` (or of
        `sessions` of two minds) against each other, "paired" two conditions of the same subjects.
    estimator
        "two_stage" fits each unit and tests over units (t, Welch's or paired t test);
        "hierarchical" asks whether the 95% interval of the group's contrast excludes zero.
    subjects, sessions, trials
        Participants (per group), sessions of each (per condition), and trials per session; several
        of each give a grid.
    effect_sd
        If positive, the effect of each data set is drawn from Normal(effect, effect_sd), and power
        becomes the assurance (O'Hagan, Stevens and Campbell 2005).
    truth
        Parameters of a mind in the middle of the group, natural scale; the model's prior means
        otherwise.
    spread
        Standard deviations between subjects on the unconstrained scale; the model's `group_sd`
        otherwise. Always 0 for one mind.
    correlation
        Correlations over subjects on the unconstrained scale, {"alpha,beta": 0.5}, where the effect
        is of parameters; a hierarchical estimator estimates them too.
    pilot
        The folder of a hierarchical fit. The group of each data set is then a draw of its
        posterior: power is averaged over what the pilot leaves open of means and spreads. An
        effect {"optimism_bias": "pilot"} is the drawn group's own, and power its assurance.
        As many answers are lost, at random, as the pilot lacks.
    unconverged
        Go on with a pilot that did not converge.
    run
        The folder of a run with a language model. The sessions of the designs are then priced by
        the tokens and the money that its ledger holds.
    width
        Count the data sets whose 95% interval is narrower than this, in place of those that
        reject: precision.
    rope
        Count those whose 90% interval lies within this of the null value (of a difference, of
        zero): equivalence, by two one-sided tests at 5%.
    tell
        Called with a sentence on what a hierarchical study will take, before it begins.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        If an argument does not fit, or the design cannot identify the contrast.
    """

    verb: ClassVar[str] = "power"

    subjects: int | Sequence[int] = 1
    sessions: int | Sequence[int] = 1
    trials: int | Sequence[int] | None = None

    def answer(self) -> Power:
        """Compute the study."""
        from .power_study import compute

        return compute(self)


@frozen_question
class AskSmallest(PowerQuestion["SmallestDesign"]):
    """Find the smallest design that detects an effect with the target power.

    Power is taken to rise as Phi(a + b sqrt(size)), which is exact for normal tests. All designs
    tried so far give a posterior of (a, b); the next one is tried where half of the posterior of
    the answer lies on either side, with 100 fresh data sets. When the answer is known to
    within a few per cent it is tried once more with `replicates` data sets of its own; should it
    fail there, they join the search and it goes on.

    Parameters
    ----------
    find
        What is varied; the other sizes stay as given.
    target, most
        The power to reach, and the largest size that is considered.
    replicates
        Data sets of the confirmation.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`; every design is a folder within `out`.

    Raises
    ------
    ValueError
        As for `power`, or if the target or the bounds make no sense.
    """

    verb: ClassVar[str] = "smallest_design"

    subjects: int = 1
    sessions: int = 1
    trials: int | None = None
    replicates: int = 1000
    find: Literal["sessions", "subjects", "trials"] = "sessions"
    target: float = 0.8
    most: int = 1000

    def answer(self) -> SmallestDesign:
        """Search."""
        from .smallest_design import compute

        return compute(self)


@frozen_question
class AskSequential(PowerQuestion["Sequential"]):
    """Ask how a stopping rule behaves: its false alarms, power, expected cost and bias.

    Data sets are simulated at the largest number of units, without an effect and with it, and the
    rule looks at each as it would while answers come. Units are sessions of one mind, or subjects.

    Parameters
    ----------
    stop
        A `StoppingRule`, or a TOML file that holds one.
    unit
        "sessions" or "subjects": of what the rule's looks are numbers.
    subjects, sessions
        The other one: subjects of one session, or sessions of one mind.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        As for `power`, or if the rule does not fit.
    """

    verb: ClassVar[str] = "sequential_design"

    subjects: int = 1
    sessions: int = 1
    trials: int | None = None
    stop: Any = None
    unit: Literal["sessions", "subjects"] = "sessions"

    def asked(self) -> dict[str, Any]:
        """What was asked; a rule that is no file is in the design alone."""
        told = super().asked()
        looked = {"subjects": None, "sessions": None} | (
            {"sessions": self.sessions} if self.unit == "subjects" else {}
        )
        stop = self.stop if isinstance(self.stop, str) else None
        unit = None if self.unit == "sessions" else self.unit
        return told | looked | {"stop": stop, "unit": unit}

    def answer(self) -> Sequential:
        """Compute the study."""
        from .sequential import compute

        return compute(self)


@frozen_question
class AskModels(ExperimentQuestion["ModelPower"]):
    """Ask how often designs find the true one of several models.

    Each model makes data sets of its own, all of them are fitted to each by maximum likelihood,
    and the best sum of the criterion over subjects wins.

    Parameters
    ----------
    model, against
        The models, which take their turns at being true.
    criterion
        "aic" or "bic"; `confuse` has more.
    subjects, sessions, trials
        Of each data set; several of each give a grid.
    replicates
        Data sets of each model per design.
    truth
        Parameters held at a value; the others are drawn from the priors for each subject.
    pilot
        The folder of a hierarchical fit of one of the models. The groups of its data sets are
        draws of the posterior, and as many answers are lost, at random, as the pilot lacks.
    unconverged
        Go on with a pilot that did not converge.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        If an argument does not fit, or the pilot is a fit of none of the models.
    """

    command: ClassVar[str] = "power"
    verb: ClassVar[str] = "model_power"
    help: ClassVar[str] = PowerQuestion.help

    environment: Environment | str = asks(Experiment, kw_only=False)
    against: Sequence[type[Agent] | str] = asks(MODELS["against"].option, kw_only=False)
    model: type[Agent] | str = asks(Model, default="rescorla_wagner_dual", untyped=None)
    criterion: Literal["aic", "bic"] = asks(MODELS["criterion"].option, default="bic")
    subjects: Any = asks(PowerQuestion.typed()["subjects"].option, default=1)
    sessions: Any = asks(SeveralSessions, default=1)
    trials: Any = asks(SeveralTrials, default=None)
    replicates: int = asks(PowerQuestion.typed()["replicates"].option, default=400)
    truth: Mapping[str, float] | None = asks(Values, default=None, name="values")
    pilot: str | Path | None = asks(PowerQuestion.typed()["pilot"].option, default=None)
    unconverged: bool = asks(PowerQuestion.typed()["unconverged"].option, default=False)
    seed: int = asks(Seed, default=0)

    @classmethod
    def named(cls, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the names of all models that were typed."""
        return [found["model"], *found["against"]]

    @classmethod
    def of_typed(cls, given: Mapping[str, Any]) -> AskModels:
        """Take what was typed; what belongs to an effect is refused."""
        usual = {name: how.untyped for name, how in PowerQuestion.typed().items()}
        own = {*cls.typed(), "out", "workers", "backend", "scheduler", "share"}
        for name, value in usual.items():
            if name not in own and given.get(name) not in (value, [], None):
                raise ValueError(
                    "With --against models are compared and no effect is looked for; got "
                    f"--{name.replace('_', '-')}. Leave one of them out."
                )
        return cls(**cls.read(given))

    def asked(self) -> dict[str, Any]:
        """What was asked: names, not things."""
        from knownminds.validation.engine.arguments import resolve_model

        pilot = None if self.pilot is None else str(self.pilot)
        rivals = [resolve_model(model).name for model in self.against]
        return super().asked() | {"from": pilot, "against": rivals}

    def answer(self) -> ModelPower:
        """Compute the study."""
        from .model_power import compute

        return compute(self)


@frozen_question
class AskAudit(StudyQuestion["Audit"]):
    """Ask what a metric and its test do to known minds.

    A measure without a null value (a score) has no test; of it, bias, error and coverage are told.
    Under the measure's rational model, drawn from its priors, the test should reject in 5% of the
    data sets whatever the design: its size. Under the violator, whose dial is turned until the
    group has each of the `effects`, it should reject often: its power. In both the estimate
    should lie at the truth (bias), as close as its own standard error says, and its 95% intervals
    should hold the truth.

    Parameters
    ----------
    measure
        Its name; `MEASURES` holds all.
    environment
        The experiment; the measure's first one if None.
    effects
        True values of the measure in the violators; None for some that they can have.
    subjects, sessions, trials
        Of each data set; several numbers of trials are audited one by one.
    replicates
        Data sets for each kind of mind and number of trials.
    workers, backend, scheduler, share, out, progress
        Where and how it is computed, see `Running`.

    Raises
    ------
    ValueError
        If a name is unknown (the nearest are named), or a number does not fit.
    """

    command: ClassVar[str] = "audit"
    verb: ClassVar[str] = "audit"
    help: ClassVar[str] = "Ask what a metric and its test do to minds whose true value is known."

    measure: str = asks(
        Annotated[
            str,
            typer.Argument(
                help="The measure, coherence, consistency or shortcuts; see `knownminds list`.",
                autocompletion=completes("measures"),
            ),
        ],
        kw_only=False,
    )
    environment: Environment | str | None = asks(ExperimentOption, default=None)
    effects: Sequence[float] | None = option(
        list[float] | None, "True values in the violators.", default=None, name="effect"
    )
    subjects: int = asks(Subjects, default=20)
    sessions: int = asks(Sessions, default=1)
    trials: int | Sequence[int] | None = asks(SeveralTrials, default=None)
    replicates: int = option(int, "Data sets per design.", default=400)
    seed: int = asks(Seed, default=0)

    @classmethod
    def typed(cls) -> dict[str, Typed]:
        """Its own fields, and settings of the experiment."""
        found = super().typed()
        seed = found.pop("seed")
        option = Annotated[
            list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
        ]
        return {**found, "settings": Typed(option, None), "seed": seed}

    @classmethod
    def of_typed(cls, given: Mapping[str, Any]) -> Any:
        """Ask about a measure, or for one of `AUDITS`, which have settings of their own."""
        from knownminds.environments import unknown
        from knownminds.inference import MEASURES

        measure, texts = given["measure"], given["settings"]
        if measure in AUDITS:
            return AskNamedAudit.of_typed(given)
        if measure not in MEASURES:
            raise ValueError(unknown("measure", measure, [*MEASURES, *AUDITS]))
        found, typed = MEASURES[measure], read_settings(texts)
        needed = [f"{k}={v}" for k, v in found.settings.items() if k not in typed]
        environment, _ = resolve_experiment(
            given["environment"] or found.environments[0], [], None, [*needed, *(texts or [])]
        )
        return cls(**cls.read(given) | {"environment": environment})

    def answer(self) -> Audit:
        """Compute the study."""
        from .audit import compute

        return compute(self)


@frozen_question
class AskNamedAudit(StudyQuestion[Any]):
    """Ask what one of `AUDITS` finds, with settings of its own."""

    measure: str
    settings: Mapping[str, Any]
    replicates: int
    seed: int

    @classmethod
    def of_typed(cls, given: Mapping[str, Any]) -> AskNamedAudit:
        """Take the settings as typed; what only measures have is refused."""
        measure = given["measure"]
        usual = {"effect": None, "environment": None, "subjects": 20, "sessions": 1}
        place = {}
        if measure == "shortcuts" and given["environment"] is not None:
            place = {"environment": given["environment"]}
            given = {**given, "environment": None}
        for name, value in usual.items():
            if given[name] != value:
                raise ValueError(
                    f"The audit of {measure} has a design of its own; got --{name}. Leave it out."
                )
        trials = {"trials": given["trials"]} if given["trials"] else {}
        running = {own.name: given.get(own.name) for own in fields(StudyQuestion)}
        return cls(
            measure=measure,
            settings=place | read_settings(given["settings"]) | trials,
            replicates=given["replicates"],
            seed=given["seed"],
            **running,
        )

    def answer(self) -> Any:
        """Compute the study."""
        audit = load(f"{AUDITS[self.measure]}:audit")
        return audit(self.settings, replicates=self.replicates, seed=self.seed, **self.running)
