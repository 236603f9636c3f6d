"""Questions of `power` and `audit`: arguments and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from knownminds.validation.engine.question import (
    ExperimentQuestion,
    StudyQuestion,
    asked_by,
    load,
    option,
)
from knownminds.validation.reading import read_numbers, read_texts
from knownminds.validation.studies import AUDITS

if TYPE_CHECKING:
    from knownminds.agents import Model
    from knownminds.environments import Environment
    from knownminds.inference import StoppingRule
    from knownminds.validation.engine.result import Result  # noqa: F401 - named in a string

    from .pilot import Pilot

PILOT = "pilot"  # as the size of an effect: the one that the pilot has


def _read_effect(text: str) -> dict[str, Any]:
    """Read NAME=SIZE, or NAME=pilot."""
    effect = read_texts("--effect", [text])
    return effect if list(effect.values()) == [PILOT] else read_numbers("--effect", [text])


def _is_run(pilot: Any) -> bool:
    """Whether a pilot is a run in several wordings, and no fit."""
    from .pilot import is_of_wordings

    return is_of_wordings(pilot)


@asked_by(
    "power",
    "power.power",
    rare="effect_sd spread correlation pilot wordings dollars run width rope unit criterion",
    only_with={"target": "find", "most": "find", "unit": "stop", "criterion": "against"},
)
class Power(ExperimentQuestion["Result"]):
    """Ask how often a design detects an effect, or which is the smallest that does.

    Agents are Normal on the unconstrained scale around the group's mean. The effect is put in by
    turning the measure's dial, so that the group's mean of the measure on the natural scale (or
    its difference between the conditions) is the stated effect. Designs of one agent (1 subject)
    test over sessions, others over subjects.

    With `find` the smallest number is searched; what it found is tried once more with `replicates`
    fresh data sets. The notes of the result say how.

    With `stop` data sets are simulated at the largest number of units, without an effect and with
    it, and the rule looks at each as it would while answers come.

    Parameters
    ----------
    effect : NAME=SIZE: a measure or a parameter, on the natural scale; with --from also NAME=pilot.
    comparison : one (against the null value), between or paired conditions. "between" is of two
        groups of `subjects` (or `sessions` of two agents), "paired" of the same subjects.
    estimator : marginal or hierarchical, of a contrast of parameters over several participants: the
        group's mean by its marginal likelihood (t test), or whether the 95% interval of a
        hierarchical model excludes the null value. One agent's sessions and other measures are
        tested over units (t, Welch's or paired t test).
    subjects : Participants, per group with --comparison between; 1 is one agent.
    sessions : Sessions of each subject, per condition.
    replicates : Data sets per design; 400, or 1000 to confirm --find.
    effect_sd : Spread of the effect: assurance. The effect of each data set is drawn from
        Normal(effect, effect_sd) (O'Hagan, Stevens and Campbell 2005).
    truth : NAME=VALUE: a parameter in the middle of the group, or a setting of the experiment.
    spread : NAME=SD: spread of participants, unconstrained scale. The model's `group_sd` otherwise;
        always 0 for one agent.
    pilot : A hierarchical fit (its folder): groups are drawn from its posterior. Model and settings
        are the pilot's, unless others are named. An effect {"optimism_bias": "pilot"} is that of
        the drawn group, and power its assurance; of a fit whose formula tells two groups apart
        (alpha ~ group), their difference. As many answers are lost, at random, as the pilot lacks.
        Or a run in several wordings, from which designs of `wordings` and `sessions` are projected.
    wordings : With a run in several wordings as the pilot: how many. Several numbers give a grid
        with those of sessions; all from 1 to those that ship if none.
    dollars : With such a pilot: what all sessions may cost; there are as many as that buys.
    run : A run's folder: what its sessions took prices those of the designs.
    width : Count data sets whose 95% interval is narrower (precision).
    rope : Count data sets whose 90% interval lies so near the null value (equivalence), by two
        one-sided tests at 5%.
    find : sessions, subjects or trials: find the smallest number.
    target : The power to reach, with --find.
    stop : A stopping rule (TOML): its errors, cost and bias.
    unit : With --stop: sessions (of one agent) or subjects.
    against : A rival of --model: how often the true one of them is best. See `confuse`.
    criterion : With --against: aic or bic.
    tell : Called with a sentence on what a hierarchical study will take, before it begins.
    """

    effect: Mapping[str, float | str] | None = option(
        read=_read_effect, default=None, kw_only=False
    )
    model: type[Model] | str | None = None
    comparison: Literal["one", "between", "paired"] = "one"
    estimator: Literal["marginal", "hierarchical"] = "marginal"
    subjects: int | Sequence[int] = 1
    sessions: int | Sequence[int] = 1
    trials: int | Sequence[int] | None = None
    replicates: int | None = None
    effect_sd: float = 0.0
    spread: Mapping[str, float] | None = None
    correlation: Mapping[str, float] | None = None
    pilot: str | Path | Pilot | None = None
    unconverged: bool = False
    wordings: Sequence[int] = ()
    dollars: float | None = None
    run: str | Path | None = None
    width: float | None = None
    rope: float | None = None
    find: Literal["sessions", "subjects", "trials"] | None = None
    target: float = 0.8
    most: int = 1000
    stop: str | Path | StoppingRule | None = None
    unit: Literal["sessions", "subjects"] = "sessions"
    against: Sequence[str] = ()
    criterion: Literal["aic", "bic"] = "bic"
    tell: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        """Check that the options go together; the model is that of the pilot, or the usual one."""
        if isinstance(self.pilot, str | Path):
            self._take_from(self.pilot)
        super().__post_init__()
        if not self.against and self.effect is None:
            raise ValueError(
                "Power is that of an effect, --effect NAME=SIZE, or of a comparison of models, "
                "--against MODEL; got neither."
            )
        of_wordings = {"wordings": len(self.wordings) > 0, "dollars": self.dollars is not None}
        for name, given in of_wordings.items():
            if given and not _is_run(self.pilot):
                raise ValueError(
                    f"--{name} is said of a run in several wordings, from which designs are "
                    "projected; add --from RUN."
                )
        if self.find is not None and self.stop is not None:
            raise ValueError(
                "A study looks for a size or at a stopping rule; got --find and --stop."
            )
        if self.find is not None or self.stop is not None:
            self.check_single("--find" if self.find is not None else "--stop")

    def _take_from(self, pilot: str | Path) -> None:
        """Take a pilot's model and its experiment's settings where none are named."""
        from .pilot import played_in, settings_of_run

        model, played = (
            (None, settings_of_run(pilot, str(self.environment))) if _is_run(pilot)
            else played_in(pilot)
        )  # fmt: skip
        if self.model is None:
            object.__setattr__(self, "model", model)
        if isinstance(self.environment, str) and played:
            object.__setattr__(self, "truth", {**played, **(self.truth or {})})

    @property
    def playing(self) -> Sequence[Any]:
        """The model and its rivals."""
        return [self.model, *self.against]

    def option_values(self) -> dict[str, Any]:
        """The options; a pilot or a rule by its file or its name."""
        options = super().option_values()
        if self.pilot is not None:
            options["from"] = str(getattr(self.pilot, "folder", self.pilot))
        if self.stop is not None:
            options["stop"] = str(self.stop)
        return options


@asked_by("audit", "power.audit")
class Audit(StudyQuestion["Result"]):
    """Ask what a metric and its test do to agents whose true value is known.

    Under the measure's rational model, drawn from its priors, the test should reject in 5% of the
    data sets whatever the design: its size. Under the violator, whose dial is turned until the
    group has each of the `effects`, it should reject often: its power. In both the estimate
    should lie at the truth (bias), as close as its standard error says, and its 95% intervals
    should hold the truth. A measure without a null value (a score) has no test; of it, bias, error
    and coverage are scored.

    The audits of coherence, consistency, the observer of all magnitudes, shortcuts and the channel
    of words have designs and settings of their own; see their modules in `AUDITS`.

    Parameters
    ----------
    measure : A measure (`knownminds list --measures`), or one of channel, coherence, consistency,
        observer, shortcuts.
    environment : The experiment. The measure's first one if none.
    effects : True values in the violators. Some that they can have if none.
    subjects : Subjects of each data set.
    trials : Trials per session. Several numbers are audited one by one.
    replicates : Data sets per design.
    settings : NAME=VALUE: a setting of the experiment or of the audit.
    """

    measure: str = option(argument=True, of=("measure", "audit"), kw_only=False)
    environment: Environment | str | None = None
    effects: Sequence[float] | None = option("--effect", default=None)
    subjects: int = 20
    sessions: int = 1
    trials: int | Sequence[int] | None = None
    replicates: int = 400
    settings: Mapping[str, Any] | None = None
    seed: int = 0

    def option_values(self) -> dict[str, Any]:
        """The options; for audits with a design of their own, the options that these take."""
        options = super().option_values()
        if self.measure in AUDITS:
            sizes = ("subjects", "sessions")
            options |= dict.fromkeys(set(sizes) - set(load(AUDITS[self.measure], "OPTIONS")))
        return options
