"""Belief networks from files: ours, BIF, tables of cases, and those that ship with pgmpy."""

from __future__ import annotations

import gzip
import tomllib
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from knownminds.environments.later import pandas as pd
from knownminds.members import unknown

from .belief_network import BeliefNetwork, Node, NoisyOrLaw

MINIMUM_SUPPORT = 100
INSTALL = 'pip install "knownminds[networks]"'
_PRESENT = ("present", "yes", "true", "positive", "1", "t", "y")


@dataclass(frozen=True, eq=False)
class NetworkWords:
    """The questions about a network, and the words for its nodes.

    Parameters
    ----------
    target : the queried node
    present : its state 1, the condition
    condition : completes "they ..."
    auxiliary : the node over which expectations are iterated
    person : words for the person of a context
    says : by node and state, completes "who ..."; nodes that are absent are never shown
    fewest, most : how many nodes a context shows
    """

    target: str
    present: int
    condition: str
    auxiliary: str
    person: str
    says: Mapping[str, tuple[str, ...]]
    fewest: int
    most: int


def _shipped() -> dict[str, Any]:
    text = Path(__file__).with_name("networks.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


SHIPPED: tuple[str, ...] = tuple(_shipped())


def load_network(
    network: str,
    target: str | None = None,
    auxiliary: str | None = None,
    edges: tuple[tuple[str, str], ...] | None = None,
    minimum_support: int = MINIMUM_SUPPORT,
) -> tuple[BeliefNetwork, NetworkWords]:
    """Return a network and its words, by name or path.

    Parameters
    ----------
    network : "heart", "diabetes", "fever" or "crying"; the path of a .bif or .csv file, whose words
        may stand beside it in FILE.words.toml; or the name of a network that ships with pgmpy.
    target : The queried node; None for the target of a shipped network, or if a single node has two
        states.
    auxiliary : The node over which expectations are iterated; None for that of a shipped network,
        otherwise the first parent of the target, or else the first other node.
    edges : Pairs of parent and child, which a table of cases does not hold; see `read_csv`.
    minimum_support : How many cases each stratum of a table needs.

    Raises
    ------
    ValueError : If there is no such network or node, the file cannot be read, or the target does
        not have two states.
    """
    path = Path(network)
    files = [file for file in (path, _words_of(path)) if file.is_file()]
    content = " ".join(sha256(file.read_bytes()).hexdigest() for file in files)
    return _loaded(network, content, target, auxiliary, edges, minimum_support)


@lru_cache(maxsize=32)
def _loaded(
    network: str,
    content: str,  # of a file, which may have been edited
    target: str | None,
    auxiliary: str | None,
    edges: tuple[tuple[str, str], ...] | None,
    minimum_support: int,
) -> tuple[BeliefNetwork, NetworkWords]:
    shipped = _shipped()
    path = Path(network)
    if network in shipped:
        table = shipped[network]
        loaded, words = _of_table(table)
        if target is None and auxiliary is None:
            return loaded, words
        says: Mapping[str, tuple[str, ...]] = words.says
        return loaded, _asked(
            loaded, target or words.target, auxiliary or words.auxiliary, says, table
        )
    if path.name.lower().endswith((".bif", ".bif.gz")):
        loaded = read_bif(path)
    elif path.suffix.lower() == ".csv":
        loaded = read_csv(path, edges, minimum_support, target)
    else:
        loaded = from_pgmpy(network)
    return loaded, _in_own_words(loaded, _asked(loaded, target, auxiliary), _words_of(path))


def _words_of(network: Path) -> Path:
    """Return the file of words that may stand beside a file of a network."""
    return network.with_name(f"{network.name}.words.toml")


def _in_own_words(network: BeliefNetwork, words: NetworkWords, file: Path) -> NetworkWords:
    """Return the words of a network with those of a file, if there is one.

    It has `person`, `condition` (completes "they ...") and, under `says`, a table for each node
    with what completes "who ..." of each of its states. What it leaves out stays as it is.
    """
    if not file.is_file():
        return words
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"Words are a readable TOML file; {file.name} is not: {error}") from None
    for entry in given:
        if entry not in (known := ("person", "condition", "says")):
            raise ValueError(unknown("entry", entry, known, f" of {file.name}"))
    says = dict(words.says)
    for name, phrases in given.get("says", {}).items():
        states = network.nodes[network.position(name)].states
        for state in phrases:
            if state not in states:
                raise ValueError(unknown("state", state, states, f" of {name} in {file.name}"))
        plain = says[name]
        says[name] = tuple(str(phrases.get(s, p)) for s, p in zip(states, plain, strict=True))
    return replace(
        words,
        person=str(given.get("person", words.person)),
        condition=str(given.get("condition", words.condition)),
        says=says,
    )


def _asked(
    network: BeliefNetwork,
    target: str | None,
    auxiliary: str | None,
    says: Mapping[str, tuple[str, ...]] | None = None,
    table: Mapping[str, Any] | None = None,
) -> NetworkWords:
    """Choose the questions for a network that does not name them, and put its nodes into words."""
    if target is None:
        binary = [node.name for node in network.nodes if len(node.states) == 2]
        if len(binary) != 1:
            raise ValueError(
                f"A target is needed where several nodes could be it; got {', '.join(binary)}. "
                "Set target to the one that is asked about."
            )
        target = binary[0]
    at = network.position(target)
    states = network.nodes[at].states
    if len(states) != 2:
        raise ValueError(
            f"A target has two states, without and with the condition; {target} has "
            f"{', '.join(states)}. Choose another, or merge its states."
        )
    lower = [state.casefold() for state in states]
    present = next((lower.index(word) for word in _PRESENT if word in lower), 1)
    if len(network.nodes) < 3:
        raise ValueError("A network has a target, an auxiliary and one node to be told; got fewer.")
    if auxiliary is None:
        auxiliary = next(
            node for node in (*network.nodes[at].parents, *network.names) if node != target
        )
    network.position(auxiliary)
    if auxiliary == target:
        raise ValueError(f"The auxiliary is another node than the target; got {target!r} for both.")
    words = {
        node.name: tuple(f"has {node.name} = {state}" for state in node.states)
        for node in network.nodes
    }
    if says:
        words = {name: says.get(name, words[name]) for name in (*says, target, auxiliary)}
    shipped = table is not None and target == table["target"]
    condition = table["condition"] if table and shipped else f"have {target} = {states[present]}"
    tellable = [name for name in words if name not in (target, auxiliary)]
    fewest, most = table["told"] if table else (1, 8)
    return NetworkWords(
        target=target,
        present=present,
        condition=condition,
        auxiliary=auxiliary,
        person=table["person"] if table else "person",
        says=words,
        fewest=min(fewest, len(tellable)),
        most=min(most, len(tellable)),
    )


def _of_table(table: Mapping[str, Any]) -> tuple[BeliefNetwork, NetworkWords]:
    """Build a shipped network from its table."""
    given = table["node"]
    nodes = []
    for node_name, node in given.items():
        states = tuple(node["states"])
        if "strengths" in node:
            parents = tuple(node["strengths"])
            strengths = tuple(tuple(map(float, s)) for s in node["strengths"].values())
            nodes.append(
                Node(node_name, states, parents, NoisyOrLaw(float(node["leak"]), strengths))
            )
            continue
        effects = node.get("effects", {})
        score = np.zeros(())
        for effect in effects.values():
            score = score[..., None] + np.asarray(effect, dtype=float)
        steps = np.arange(len(states))
        weights = np.exp(np.asarray(node["weights"], dtype=float) + steps * score[..., None])
        table_of = weights / weights.sum(axis=-1, keepdims=True)
        nodes.append(Node(node_name, states, tuple(effects), table_of))
    says = {node_name: tuple(node["says"]) for node_name, node in given.items() if "says" in node}
    words = NetworkWords(
        target=table["target"],
        present=1,
        condition=table["condition"],
        auxiliary=table["auxiliary"],
        person=table["person"],
        says=says,
        fewest=table["told"][0],
        most=table["told"][1],
    )
    return BeliefNetwork(nodes), words


def read_bif(file: str | Path) -> BeliefNetwork:
    """Read a network in the Bayesian interchange format, by the reader of pgmpy.

    Variables are discrete; a probability block holds a table, or a row per combination of the
    parents' states.

    Raises
    ------
    ValueError : If pgmpy is not installed, the file cannot be read, a block names an unknown
        variable, a stratum has no row, or probabilities do not sum to 1.
    """
    path = Path(file)
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(f"A BIF file is readable text; {path.name} is not: {error}") from None
    try:
        with warnings.catch_warnings():  # pgmpy warns about its modules
            warnings.simplefilter("ignore", FutureWarning)
            from pgmpy.readwrite import BIFReader
            from pyparsing import ParseException
    except ImportError:
        raise ValueError(f"A BIF file is read by pgmpy: {INSTALL}.") from None
    try:
        reader = BIFReader(string=text)
        if not reader.variable_names:
            raise ValueError("it has no variable")
        laws = {law.variable: law for law in reader.get_model().get_cpds()}
        nodes = []
        for name in reader.variable_names:
            law = laws[name]
            table = np.moveaxis(law.values, 0, -1)
            nodes.append(Node(name, tuple(law.state_names[name]), tuple(law.variables[1:]), table))
    except (ValueError, LookupError, AttributeError, TypeError, ParseException) as error:
        raise ValueError(
            "A BIF file has for each variable a block 'variable NAME { type discrete [ N ] "
            "{ ... }; }' and a block 'probability ( NAME | PARENTS ) { ... }' with a row per "
            f"stratum; pgmpy cannot read {path.name}: {error}"
        ) from None
    return BeliefNetwork(nodes)


def read_csv(
    file: str | Path,
    edges: Collection[tuple[str, str]] | None = None,
    minimum_support: int = MINIMUM_SUPPORT,
    target: str | None = None,
) -> BeliefNetwork:
    """Estimate a network from a table of cases: shares within strata, without smoothing.

    Parameters
    ----------
    file : A CSV file with a row per case and a column per node; every distinct text is a state.
    edges : Pairs of parent and child; None for edges from the target to every other column, which
        then depend on each other through the target alone.
    minimum_support : How many cases every stratum needs. A stratum is a combination of states of a
        node's parents.

    Raises
    ------
    ValueError : If a cell is empty, an edge names an unknown column, or a stratum has too few
        cases. The error names it.
    """
    path = Path(file)
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"Cases are a readable CSV file; {path.name} is not: {error}") from None
    if isinstance(minimum_support, bool) or minimum_support < 1:
        raise ValueError(f"minimum_support is a whole number from 1 on; got {minimum_support!r}.")
    empty = np.argwhere((table == "").to_numpy())
    if len(empty):
        row, column = empty[0]
        raise ValueError(
            f"Each case has a state of every node; row {row + 1} of {path.name} has no "
            f"{table.columns[column]}. Leave such rows out, or name the gap a state."
        )
    names = [str(name) for name in table.columns]
    if edges is None:
        if target is None:
            raise ValueError(
                f"A table of cases tells no edges; {path.name} came without. Set target, for "
                "edges from it to every other column, or set edges."
            )
        if target not in names:
            raise ValueError(unknown("node", target, names, f" in {path.name}"))
        edges = [(target, name) for name in names if name != target]
    for pair in edges:
        for name in pair:
            if name not in names:
                raise ValueError(unknown("node", name, names, f" in {path.name}"))
    codes, states = {}, {}
    for name in names:
        states[name] = tuple(sorted(table[name].unique()))
        codes[name] = np.searchsorted(np.array(states[name]), table[name].to_numpy(dtype=str))
    nodes = []
    for name in names:
        parents = tuple(parent for parent, child in edges if child == name)
        shape = (*(len(states[p]) for p in parents), len(states[name]))
        counts = np.zeros(shape)
        np.add.at(counts, tuple(codes[p] for p in (*parents, name)), 1)
        support = counts.sum(axis=-1)
        for at in product(*(range(k) for k in shape[:-1])):
            if support[at] < minimum_support:
                named = [states[p][k] for p, k in zip(parents, at, strict=True)]
                raise ValueError(
                    f"Each stratum has at least {minimum_support} cases; {name} in {path.name} "
                    f"has {int(support[at])} where {_stratum(parents, named)}. Merge states, take "
                    "edges out, or lower minimum_support."
                )
        nodes.append(Node(name, states[name], parents, counts / support[..., None]))
    return BeliefNetwork(nodes)


def from_pgmpy(name: str) -> BeliefNetwork:
    """Return a network that ships with pgmpy, such as asia.

    Raises
    ------
    ValueError : If pgmpy is not installed or ships no network of this name.
    """
    package = find_spec("pgmpy")
    if package is None or not package.submodule_search_locations:
        raise ValueError(
            f"{unknown('network', name, SHIPPED)} Those that ship with pgmpy need it: {INSTALL}. "
            "Others are given by the path of a .bif or .csv file."
        )
    folder = Path(package.submodule_search_locations[0], "utils", "example_models")
    ending = ".bif.gz"
    shipped = [path.name.removesuffix(ending) for path in folder.glob(f"*{ending}")]
    if name not in shipped:
        message = unknown("network", name, {*SHIPPED, *shipped})
        raise ValueError(f"{message} Others are given by the path of a .bif or .csv file.")
    return read_bif(folder / f"{name}{ending}")


def _stratum(parents: Sequence[str], states: Sequence[str]) -> str:
    pairs = [f"{parent}={state}" for parent, state in zip(parents, states, strict=True)]
    return ", ".join(pairs) or "nothing is given"
