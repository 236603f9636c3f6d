"""Questions of `simulate`, `fit`, `score`, `import` and `export`: arguments and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from knownminds.validation.engine.question import (
    ExperimentQuestion,
    Question,
    asked_by,
    frozen_question,
    option,
)

if TYPE_CHECKING:
    from knownminds.agents import Model
    from knownminds.environments import Environment, Trials
    from knownminds.inference.magnitudes.equal_blur import EqualBlur  # noqa: F401 - in a string
    from knownminds.validation.engine.result import Result  # noqa: F401 - in a string
    from knownminds.validation.imports.mapping import ColumnMap

    from .fit_answer import Fit  # noqa: F401 - in a string


R = TypeVar("R", covariant=True)


def _names(text: str) -> list[str] | None:
    return text.split(",") if text else None


@frozen_question
class TrialsQuestion(Question[R]):
    """A question about trials that there are.

    Parameters
    ----------
    settings : NAME=VALUE: a setting of the experiment, where the data do not tell it.
    """

    data: Trials | str | Path | Sequence[str | Path] = option(argument=True, kw_only=False)
    environment: str | None = None
    columns: Mapping[str, str] | None = None
    settings: Mapping[str, Any] | None = None
    where: Mapping[str, str] | None = None
    seed: int = 0
    out: str | Path | None = None

    def __post_init__(self) -> None:
        """Take a table of pandas for the trials that are in it."""
        table: Any = self.data
        if hasattr(table, "iloc"):
            from knownminds.environments import Trials

            told = {name: getattr(self, name) for name in ("columns", "environment")}
            object.__setattr__(self, "data", Trials.from_frame(table, **told))


@asked_by("fit", "data.fit", holds="")
class AskFit(TrialsQuestion["Fit"]):
    """Fit people's or models' choices, and say what so many trials support.

    Parameters
    ----------
    data : .csv or .parquet files, or folders of runs, joined; or trials, or a table of pandas.
    environment : The experiment. None takes it from the data, or from the model if only one fits
        it.
    method : mle, map or hierarchical.
    formula : "alpha ~ condition" or "alpha ~ drug + (drug | subject)" (hierarchical). What moves
        group means, and columns within subjects.
    rope : NAME=HALF: a contrast this small is no difference. Half the width of the region around 0,
        on the natural scale; a tenth of the prior's spread if not given.
    unit : Columns that name the units with parameters of their own: subject,domain.
    crossed : Columns whose levels deviate as well (hierarchical).
    correlated : Parameters may go together over subjects (hierarchical).
    over : cells: one set of parameters of a participant in several experiments and conditions. The
        data may hold those of a whole benchmark; --unit names participants, if no column
        participant or model does.
    sampling : NAME=VALUE: of the sampler, target_accept=0.8 or minutes=15 (hierarchical). What has
        not converged by then is called so.
    against : A model to compare with, by how they predict left-out subjects.
    rivals : Compare with all models of the experiment.
    separate : Fit each session on its own, as if another subject had played it.
    workers : Threads.
    tell : Called with a line on what is going on.
    """

    model: type[Model] | str | None = option(default=None, kw_only=False)
    method: Literal["map", "mle", "hierarchical"] = "map"
    formula: Sequence[str] | None = None
    rope: Mapping[str, float] | None = None
    unit: Sequence[str] | None = option(read=_names, default=None)
    over: Literal["cells"] | None = None
    crossed: Sequence[str] | None = option(read=_names, default=None)
    correlated: bool = False
    fixed: Mapping[str, float] | None = None
    fit_lapse: bool = False
    all_trials: bool = False
    sampling: Mapping[str, float] | None = None
    against: Sequence[str] | None = None
    rivals: bool = False
    separate: bool = False
    workers: int | None = None
    tell: Callable[[str], None] | None = None


@asked_by("score", "benchmarks.scored", holds="")
class AskScore(TrialsQuestion["Result | EqualBlur"]):
    """Read every measure off a trial file, or a paper's parts off answers to its experiment.

    Parameters
    ----------
    data : .csv or .parquet files, folders of runs, or a folder that has them; or trials, or a table
        of pandas. They may be of several experiments, separated by the column "environment".
    measures : Which measure; all that the experiments have by default. equal_blur alone is that of
        all trials of one agent together.
    environment : The experiment, of data that do not name it.
    by : A column whose values are participants, such as model.
    released : Define measures as their published code does. Of answers about a collider each
        participant is then one agent, as in Dettki (2025).
    reference : People, who are 1 of a scale on which random answers are 0: their trials, or a CSV
        file with metric and value. Of a collider: judgements to align with, trials or means.
    features : A CSV file of participants, base models and numbers, on which measures are regressed.
    feature : A column of the features that enters; all numbers by default.
    base_model : The column that says from which model a participant was made.
    standardise : Regress in standard deviations of measures and features.
    over : Of a collider: a column of conditions that are compared.
    scoring : Of a collider: by_cause, the default, fits m1 and m2 to the causes they belong to;
        pooled, the default with --released, answers for C2 by the formula of C1.
    network : Of diagnosis: the network, for tests that use the evidence.
    learner : Of diagnosis: gradient_boosting, unless given, catboost or tree.
    permutations : Of diagnosis: how many its tests rest on; 1000 unless given.
    bootstraps : Rounds that intervals rest on: 30 of a set of runs, 500 of diagnosis.
    mass : Of a set of runs: mass of its intervals, 0 to 1; 0.68 unless given.
    """

    measures: Sequence[str] | None = option("--measure", default=None, kw_only=False)
    by: str | None = None
    released: bool = False
    reference: Path | None = None
    features: Path | None = None
    feature: Sequence[str] | None = None
    base_model: str = "base_model"
    standardise: bool = False
    over: Sequence[str] | None = None
    scoring: Literal["by_cause", "pooled"] | None = None
    network: str | None = None
    learner: Any = None
    permutations: int | None = None
    bootstraps: int | None = None
    mass: float | None = None


@asked_by("import", "data.exchange:run_import", verb="import_trials", screened=False)
class AskImport(Question["Trials"]):
    """Read other people's data, and say what was understood of every row.

    Parameters
    ----------
    sources : Files, or folders of psych-ds, of a run, or of Inspect's logs. Files of a page are
        played once more.
    format : cogbench, causalign, horizon, hbayesdm, hssm, jspsych, psych-101, psych-ds, inspect,
        page, csv or parquet; else by the content.
    environment : The experiment. Needed where the files do not tell it.
    columns : ours=yours,...: of csv and parquet that are otherwise as ours.
    mapping : ours=theirs,...; 'COLUMN: text=0,text=1'; 'COLUMN: percent'; a .toml; or a map's name.
    missing : What stands for no answer, besides nothing and NA.
    subject_from_file : Each file is of one subject, named as the file.
    encoding : Of the file, such as cp1252.
    out : A .csv or .parquet file; without it nothing is written.
    save_map : A .toml file for the mapping that was used, to be copied.
    """

    sources: Sequence[str | Path] = option(argument=True, kw_only=False)
    format: str | None = option("--from,--format", default=None, kw_only=False)
    environment: Environment | str | None = None
    columns: Mapping[str, str] | None = None
    settings: Mapping[str, Any] | None = None
    mapping: Sequence[str] | ColumnMap | None = option("--map", default=None)
    where: Mapping[str, str] | None = None
    missing: Sequence[str] = ()
    subject_from_file: bool = False
    encoding: str | None = None
    out: str | Path | None = None
    save_map: str | Path | None = None

    def __post_init__(self) -> None:
        """Refuse a table."""
        if hasattr(self.sources, "iloc"):
            raise ValueError(
                "Files are imported; got a table of pandas. Give it to fit or score, or make "
                "trials of it: Trials.from_frame(table, columns=...)."
            )


@asked_by("export", "data.exchange:run_export", verb="export_trials", screened=False)
class AskExport(Question["Trials"]):
    """Write trials as a table, as texts of Psych-101 or Psych-201, or as a Psych-DS folder.

    A table of hBayesDM has neither sessions nor contexts. If people learn anew in each, each is a
    subject of its own there ("0 | 2"), also in what is returned.

    Parameters
    ----------
    data : A .csv or .parquet file, or the folder of a run; or trials.
    out : The file, or for psych-ds the folder.
    format : csv, parquet, psych-101, psych-201, psych-ds, hbayesdm or hssm; else as the name ends.
    environment : The experiment, where the trials or the run do not tell it.
    name, description, authors, licence : Of a psych-ds data set. By default it is named as the
        folder is.
    seed : Draws the names that a psych-101 text uses where trials do not tell them.
    """

    data: Trials | str | Path = option(argument=True, kw_only=False)
    out: str | Path = option("--out", default="", kw_only=False)
    format: str | None = option("--format", default=None, kw_only=False)
    environment: Environment | str | None = None
    columns: Mapping[str, str] | None = None
    settings: Mapping[str, Any] | None = None
    name: str | None = None
    description: str = ""
    authors: Sequence[str] = option("--author", default=())
    licence: str = option("--licence,--license", default="")
    seed: int = 0


@asked_by("simulate", "data.simulate")
class Simulate(ExperimentQuestion["Trials | Result"]):
    """Let subjects with known parameters play; their true values stand beside the choices.

    With `report` it is a prior predictive check of subjects with a session each. It has means of
    what they do, with the range of 90% of them.

    Parameters
    ----------
    report : Prior predictive check: a study of what the subjects do.
    out : A .csv or .parquet file; with --report a folder for the results and the report.
    """

    model: type[Model] | str | None = option(default=None, kw_only=False)
    subjects: int = 20
    sessions: int = 1
    trials: int | None = None
    lapse: float = 0.0
    questions: int | None = None
    adaptive: str | None = None
    report: bool = False

    @property
    def left_in(self) -> Path | None:
        """The folder of a report; trials are a file."""
        return super().left_in if self.report else None
