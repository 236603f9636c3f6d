"""Plans of benchmarks: which experiments, in which variants, for how many sessions, with whom."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, make, unknown
from knownminds.llm_adapters import Sampling
from knownminds.validation.costs.wordings import SHIPPED, wordings

from .claims import Claim, read_claims
from .registry import plan_of

BASE = "base"  # the variant in which an experiment is as the paper has it
MOST_SESSIONS = 1_000_000
OWN = "own words"  # the wording of a file of the user's
_PLAN = ("benchmark", "seed", "small", "sampling", "experiments", "variants", "known", "models",
         "claims")  # fmt: skip
_EXPERIMENT = ("environment", "sessions", "settings", "sampling", "variants", "small")
_VARIANT = ("settings", "sampling", "sessions")
_SMALL = ("settings", "sessions")
_MODEL = ("model", "base_url", "key_variable", "images", "timeout", "price", "sampling")


@dataclass(frozen=True, eq=False)
class Cell:
    """An experiment in a variant, as everybody plays it.

    Parameters
    ----------
    name : "EXPERIMENT", or "EXPERIMENT/VARIANT" where the variant is not the base.
    experiment, variant : Their names in the plan.
    environment : The experiment with its settings.
    sessions : How many each participant lives.
    sampling : How answers are drawn.
    wording : The name of its wording, "shipped" or that of a paraphrase. Cells that differ in this
        alone share their name: they are the same cell in other words.
    """

    name: str
    experiment: str
    variant: str
    environment: Environment
    sessions: int
    sampling: Sampling
    wording: str = SHIPPED

    @property
    def key(self) -> str:
        """What tells it from all other cells, also those in other words."""
        return self.name if self.wording == SHIPPED else f"{self.name}@{self.wording}"

    def stream(self, player: str) -> int:
        """Return the stream from which a known agent answers in it; the same in all wordings."""
        return stream_of(f"{self.name}: {player}")


def stream_of(name: str) -> int:
    """Return the number of the stream that bears a name, from 0 to 2**28 - 1."""
    return int(sha256(name.encode()).hexdigest()[:7], 16)


@dataclass(frozen=True, eq=False)
class Plan:
    """A benchmark's cells, the known agents that play them as well, and what models need.

    Parameters
    ----------
    benchmark : The paper's name.
    cells : In the order of the plan.
    known : By name of the known agent and name of an experiment (or cell; "*" is all of them, and
        "*/VARIANT" all in a variant), its model and parameters.
    models : By "provider:model", how it is reached, what it costs, and its sampling. A table with
        `model` is a participant with a name, its key, and with that sampling as its own.
    seed : From which all sessions follow.
    text : The TOML that says all this.
    claims : What the paper claims, each a line.
    """

    benchmark: str
    cells: tuple[Cell, ...]
    known: Mapping[str, Mapping[str, Mapping[str, Any]]]
    models: Mapping[str, Mapping[str, Any]]
    seed: int
    text: str
    claims: tuple[Claim, ...] = ()

    @property
    def environments(self) -> dict[str, Environment]:
        """The experiment of each cell."""
        return {c.name: c.environment for c in self.cells if c.wording == SHIPPED}

    def known_agent(self, name: str, cell: Cell) -> Mapping[str, Any] | None:
        """Return model and parameters of a known agent in a cell; None where it has none."""
        return entry_in(self.known[name], cell)


def entry_in(entries: Mapping[str, Mapping[str, Any]], cell: Cell) -> Mapping[str, Any] | None:
    """Return the entry of a cell: by its name, its variant in all, its experiment, or all cells."""
    keys = (cell.name, f"*/{cell.variant}", cell.experiment, "*")
    return next((entries[key] for key in keys if key in entries), None)


def read_plan(
    benchmark: str,
    file: str | Path | None = None,
    *,
    small: bool = False,
    seed: int | None = None,
    paraphrases: int = 1,
    templates: str | Path | None = None,
) -> Plan:
    """Read the plan of a benchmark: the one that ships, or a user's own file.

    A file with nothing but the tables of models is the plan that ships, with these models.

    Parameters
    ----------
    small : Whether every cell has a tenth of its sessions (the plan's `small`), at least one.
    seed : Instead of the plan's.
    paraphrases : Number of wordings of every cell, the shipped one first.
    templates : EXPERIMENT.toml, or a folder of such files: words of the user's, in which the cells
        of these experiments are played as well.

    Raises
    ------
    ValueError : With what is wrong, where, in a sentence.
    """
    text, content = _content(plan_of(benchmark) if file is None else Path(file))
    if [*content] == ["models"]:
        ships, _ = _content(plan_of(benchmark))
        text = f"{ships}\n{text}"
        content = tomllib.loads(text)
    _check_keys("A plan", content, _PLAN, ("benchmark", "experiments"))
    if content["benchmark"] != benchmark:
        raise ValueError(
            f"The plan is of the benchmark {content['benchmark']!r}, and {benchmark!r} was named "
            "for. Name that of the plan."
        )
    cells = _cells(
        content, _number("small", content.get("small", 0.1), 0.0, 1.0) if small else None
    )
    own = _own_words(templates, cells)
    cells = tuple(again for cell in cells for again in _in_words(cell, paraphrases, own))
    known = _table("known", content)
    for name, entries in known.items():
        _check_known(name, entries, cells)
    models = _table("models", content)
    for name, how in models.items():
        _check_keys(f"The model {name}", how, _MODEL)
    plan_seed = content.get("seed", 0) if seed is None else seed
    whole = isinstance(plan_seed, int) and not isinstance(plan_seed, bool) and plan_seed >= 0
    if not whole:
        raise ValueError(f"The seed of a plan is a whole number from 0 on; got {plan_seed!r}.")
    claims = read_claims(_table("claims", content))
    return Plan(benchmark, cells, known, models, plan_seed, text, claims)


def _content(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a plan, and what it says."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"A plan is a readable TOML file; {path.name} is not: {error}") from None


def _own_words(templates: str | Path | None, cells: Sequence[Cell]) -> dict[str, str]:
    """Return the user's file of words by experiment."""
    if templates is None:
        return {}
    path = Path(templates)
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    experiments = dict.fromkeys(cell.environment.name for cell in cells)
    for file in files:
        if file.stem not in experiments:
            raise ValueError(
                f"{unknown('experiment', file.stem, experiments)} A file of --templates is named "
                "as its experiment."
            )
    if not files:
        raise ValueError(f"--templates is EXPERIMENT.toml or a folder of them; {path} has none.")
    return {file.stem: str(file.absolute()) for file in files}


def _in_words(cell: Cell, n: int, own: Mapping[str, str]) -> list[Cell]:
    """Return a cell in n wordings, and in the user's words if there are any for it."""
    kind = cell.environment.name
    names = {name: name for name in wordings(cell.environment, n)[1:]} if n > 1 else {}
    if kind in own:
        names[OWN] = own[kind]
    again = [cell]
    for name, words in names.items():
        settings = {**cell.environment.settings, "templates": words}
        again.append(replace(cell, environment=make(kind, **settings), wording=name))
    return again


def cell_names(benchmark: str) -> list[str]:
    """Return the names of the cells of the plan that ships, without making any experiment."""
    content = tomllib.loads(plan_of(benchmark).read_text(encoding="utf-8"))
    return [
        name if chosen == BASE else f"{name}/{chosen}"
        for name, variants in content["experiments"].items()
        for chosen in variants.get("variants", [BASE])
    ]


def _cells(content: Mapping[str, Any], share: float | None) -> tuple[Cell, ...]:
    variants = {BASE: {}, **_table("variants", content)}
    for name, variant in variants.items():
        _check_keys(f"The variant {name}", variant, _VARIANT)
    cells = []
    for name, entry in _table("experiments", content).items():
        where = f"The experiment {name}"
        _check_keys(where, entry, _EXPERIMENT, ("sessions",))
        small = _table("small", entry)
        _check_keys(f"{where} in small", small, _SMALL)
        for chosen in entry.get("variants", [BASE]):
            if chosen not in variants:
                raise ValueError(unknown("variant", str(chosen), variants, f" of {name}"))
            variant = variants[chosen]
            label = name if chosen == BASE else f"{name}/{chosen}"
            settings = {**_table("settings", entry), **_table("settings", variant)}
            sessions = variant.get("sessions", entry["sessions"])
            n = _whole(f"sessions of {label}", sessions)
            if share is not None:
                settings |= _table("settings", small)
                n = _whole(f"sessions of {label}", small.get("sessions", max(1, ceil(n * share))))
            sampled = [_table("sampling", part) for part in (content, entry, variant)]
            cells.append(
                Cell(
                    label,
                    name,
                    str(chosen),
                    _made(label, entry.get("environment", name), settings),
                    n,
                    sampling_of(label, *sampled),
                )
            )
    if not cells:
        raise ValueError("A plan has one experiment at least; got none.")
    return tuple(cells)


def sampling_of(where: str, *tables: Mapping[str, Any]) -> Sampling:
    """Return the sampling that several tables say, the last one before the others."""
    given = {name: value for table in tables for name, value in table.items()}
    known = [field.name for field in fields(Sampling) if field.name != "seed"]
    for name in given:
        if name not in known:
            raise ValueError(unknown("setting of sampling", name, known, f" ({where})"))
    try:
        return Sampling(**given)
    except TypeError as error:
        raise ValueError(f"The sampling of {where} cannot be read: {error}.") from None


def _made(label: str, name: Any, settings: Mapping[str, Any]) -> Environment:
    try:
        return make(str(name), **settings)
    except (ValueError, TypeError) as error:
        raise ValueError(f"The cell {label} cannot be played: {error}") from None


def _check_known(name: str, entries: Any, cells: Collection[Cell]) -> None:
    """Check that a known agent is one, and is at home where it is said to play."""
    if not isinstance(entries, dict):
        raise ValueError(f"The known agent {name} is a table of experiments; got {entries!r}.")
    names = [(cell.experiment, cell.name, f"*/{cell.variant}") for cell in cells]
    known = ["*", *dict.fromkeys(name for several in names for name in several)]
    for where, entry in entries.items():
        if where not in known:
            raise ValueError(unknown("cell", where, known, f" for the known agent {name}"))
        if not isinstance(entry, dict) or not isinstance(entry.get("model"), str):
            raise ValueError(
                f"A known agent has a model and its parameters; {name} has {entry!r} in {where}."
            )
        if entry["model"] not in AGENTS:
            raise ValueError(unknown("model", entry["model"], AGENTS))
    for cell in cells:
        if (entry := entry_in(entries, cell)) is not None:
            theta_of(entry, cell.environment)


def theta_of(given: Mapping[str, Any], environment: Environment) -> Array:
    """Return the parameters of a known agent, [P]; those left out are at the centre of the prior.

    Raises
    ------
    ValueError : If it cannot play the experiment, or has no such parameter or value.
    """
    agent = AGENTS[given["model"]]
    agent.check_plays(environment)
    theta = agent.parameters.constrain(agent.parameters.mean)
    for name, value in given.items():
        if name != "model":
            theta[agent.parameters.index(name)] = value
    agent.parameters.check(theta)
    return theta


def _check_keys(
    what: str, table: Any, known: Collection[str], needed: Collection[str] = ()
) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{what} is a table; got {table!r}.")
    for key in table:
        if key not in known:
            raise ValueError(unknown("entry", key, known, f" in {what[0].lower()}{what[1:]}"))
    for key in needed:
        if key not in table:
            raise ValueError(f"{what} says {key}; it has only {', '.join(table) or 'nothing'}.")


def _table(name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise ValueError(f"{name} of a plan is a table; got {table!r}.")
    return table


def _whole(what: str, value: Any) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (whole and 1 <= value <= MOST_SESSIONS):
        raise ValueError(f"{what} are a whole number from 1 to {MOST_SESSIONS:,}; got {value!r}.")
    return int(value)


def _number(what: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low < value <= high:
        raise ValueError(f"{what} is a share above {low:g} and up to {high:g}; got {value!r}.")
    return float(value)
