"""Judgements on colliders as causAIgn keeps them: people's table and models' answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import Collider
from knownminds.environments.causes.random_names import CONTENTS
from knownminds.environments.words.cover_stories import SENSES
from knownminds.llm_adapters.configuration import named

from .account import DERIVED, LEFT_OUT, UNREADABLE, CellTable, Tally
from .formats import Format
from .tables import answers, identified, stimuli, within, without_copies

TASKS = "aabbccddeeffgghhijjk"  # of the 20 questions, in the order of their numbers
_PROMPTS = 960  # an overload has three domains and the three of its control, each 160 numbers wide
_QUERIED = np.array([*(["C1", "C2"] * 8), "E", "E", "E", "E"])
_PRESENT = np.array([*([""] * 17), "C2", "C1", ""])[np.r_[0:16, 16, 17, 18, 19]]
_SENSES = {0: "ppp", 3: "pmm", 5: "mpm", 6: "mmp"}
_STORIES = ("economy", "sociology", "weather")
_SHORT = {"econ": "economy", "soc": "sociology", "weath": "weather"}
_CAUSES = {"X": "C1", "Y": "C2", "Z": "E"}
_LIKELIHOOD = re.compile(r"<likelihood\s*>(.*?)</likelihood\s*>", re.IGNORECASE | re.DOTALL)
_CONFIDENCE = re.compile(r"<confidence\s*>(.*?)</confidence\s*>", re.IGNORECASE | re.DOTALL)
_OVERLOAD = re.compile(r"(econ|soc|weath)_ovl_(de|d|e)=(\w+)")
_ABSTRACT = re.compile(r"abs_(\w+?)(?:_\d+)?")  # the kind of names, and how long they are
_OF_DOMAIN = 160  # numbers of prompts
_VERSION = re.compile(r"(\d+)_")  # of the words, at the beginning of a file's name
_KINDS = {"numeric": "none", "single_numeric_response": "none", "CoT": "chain_of_thought"}


def _people(table: CellTable, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read people's judgements, 0 to 100."""
    table = identified(table, "s", tally)
    table = without_copies(table, table.cells["s"], table.cells["trial"], tally)
    cells = table.cells
    letter, study = cells["letter.type"].str.lower(), cells["study.type"].astype("str")
    queried = study.str.partition("|")[0].map(_CAUSES)
    label = study.str.partition("|")[2]
    first, second = label.str.contains("X=1"), label.str.contains("Y=1")
    present = pd.Series(np.where(first, "C1", np.where(second, "C2", "")), index=cells.index)
    domain = cells["domain"].replace({"society": "sociology"})
    right = letter.isin(list(TASKS)) & queried.notna() & domain.isin(_STORIES)
    right &= cells["attr.polarity"].isin(list(_SENSES.values())) & cells["s"].notna()
    fits = pd.Series(list(zip(letter, queried, strict=True)), index=cells.index)
    known = {(task, cause) for task, cause in zip(TASKS, _QUERIED.tolist(), strict=True)}
    right &= fits.isin(known) & ((letter != "j") | (first ^ second))
    tally.mark(
        LEFT_OUT, "task, question, domain or polarity is none of the collider's", table, ~right
    )
    table = table.keep(right)
    kept = right.to_numpy()
    added: dict[str, Any] = {
        "letter": letter,
        "queried": queried,
        "present": present,
        "story": domain,
    }
    shown_too: dict[str, Any] = {name: values[kept].to_numpy() for name, values in added.items()}
    table, shown = stimuli(
        replace(table, cells=table.cells.assign(**shown_too)),
        tally,
        trial={"least": 0, "most": 1e6, "whole": True},
    )
    response, outcome, raw = answers(table, "y", tally, least=0, most=100)
    people = table.cells
    tally.mark(DERIVED, "society is our sociology", table, people["domain"] == "society")
    frame = pd.DataFrame({
        "subject": people["s"].astype("str"), "trial": shown["trial"].astype(np.int64),
        "task": people["letter"], "queried": people["queried"],
        "present": people["present"].where(people["letter"] == "j", ""), "domain": people["story"],
        "sense": people["attr.polarity"], "response": response, "outcome": outcome, "raw_text": raw,
        "reasoning": "none", "content": "meaningful", "overload": "none",
    })  # fmt: skip
    if "rt" in people:
        frame["rt_s"] = within(table, "rt", tally, least=0)
    return frame


def _model(table: CellTable, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read models' answers; the question follows from the number of the prompt."""
    passed = pd.Series("", index=table.cells.index)
    for column in ("subject", "prompt_category", "temperature", "reasoning_effort", "verbosity"):
        passed = passed + "/" + _text(table.cells, column)
    table = without_copies(table, passed, table.cells["id"], tally, repeated=True)
    cells = table.cells
    number = within(table, "id", tally, least=1, most=_PROMPTS, whole=True)
    index = np.nan_to_num(number, nan=1).astype(np.int64) - 1
    sense = pd.Series(index // 20 % 8).map(_SENSES)
    task = pd.Series(list(TASKS))[index % 20].reset_index(drop=True)
    right = pd.Series(~np.isnan(number)) & sense.notna() & cells["subject"].notna()
    for column, values in (("task", task), ("cntbl_cond", sense)):
        if column in cells:
            right &= cells[column].isna() | (cells[column] == values)
    tally.mark(LEFT_OUT, "the prompt's number, or what stands beside it, is none of the collider's",
               table, ~right)  # fmt: skip
    name = _names(table, index, tally)
    nameless = right & (name == "")
    tally.mark(LEFT_OUT, "no domain is named, so that the content is unknown", table, nameless)
    right &= ~nameless
    told = _conditions(name, index)
    strange = right & told["domain"].isna()
    tally.mark(LEFT_OUT, "a domain that is none of the collider's", table, strange)
    right &= ~strange
    told["domain"] = told["domain"].fillna(0).astype(np.int64)
    control, wanted = told["control"], given.get("control")
    if control[right].nunique() > 1 and wanted is None:
        raise ValueError(
            f"Overloads and their controls differ in a setting; {table.file} has both. "
            "Import one at a time: --set control=false."
        )
    if wanted is not None:
        other = right & (control != bool(wanted))
        tally.mark(LEFT_OUT, f"of the other half (control is not {bool(wanted)})", table, other)
        right &= ~other
    kept = right.to_numpy()
    table = table.keep(kept)
    cells = table.cells
    index = index[kept]
    tally.mark(DERIVED, "the question, from the prompt's number", table, np.ones(len(table)))
    frame = _answered(table, tally)
    kind, temperature = _text(cells, "prompt_category"), _text(cells, "temperature")
    effort, verbosity = _text(cells, "reasoning_effort"), _text(cells, "verbosity")
    version = _VERSION.match(table.name)
    tally.mark(DERIVED, "reasoning, from 'prompt_category'", table, kind.isin(list(_KINDS)))
    keys = list(zip(_text(cells, "subject"), effort, verbosity, strict=True))
    names = {key: named(key[0], reasoning_effort=key[1], verbosity=key[2]) for key in set(keys)}
    who = pd.Series([names[key] for key in keys], index=cells.index)
    prompt = kind + ("/" + temperature).where(temperature != "", "")
    nth = pd.DataFrame({"w": who, "a": prompt, "i": index}).groupby(["w", "a", "i"]).cumcount()
    tally.mark(DERIVED, "repeated passes over the prompts separated by their order", table, nth > 0)
    return frame.assign(
        subject=who, session=prompt + ("/" + nth.astype("str")).where(nth > 0, ""),
        trial=index, task=task[kept].to_numpy(), queried=_QUERIED[index % 20],
        present=_PRESENT[index % 20], sense=sense[kept].map(SENSES.index).to_numpy(),
        reasoning=kind.replace(_KINDS), **{str(n): told[n].to_numpy()[kept] for n in told},
        temperature=temperature, effort=effort, verbosity=verbosity,
        template=version[1] if version else "",
    )  # fmt: skip


def _text(cells: pd.DataFrame, column: str) -> pd.Series[Any]:
    """Return a column of conditions; what says that there is none ("N/A") is empty."""
    if column not in cells:
        return pd.Series("", index=cells.index)
    return cells[column].fillna("").astype("str").str.strip().replace("N/A", "")


def _names(
    table: CellTable, index: np.ndarray[Any, np.dtype[np.int64]], tally: Tally
) -> pd.Series[Any]:
    """Return the domain of each row as it is written, "" where none is known.

    A row without a domain, as errors are, has that of the other rows with such numbers. Where all
    domains that are named are stories in the order of the prompts, so are those that are not.
    """
    name = _text(table.cells, "domain")
    named = name.where(name != "")
    domains = named.groupby(index // _OF_DOMAIN)
    common = domains.transform("first").where(domains.transform("nunique") == 1)
    ordered = np.array(_STORIES)[index // _OF_DOMAIN % len(_STORIES)]
    told = named.dropna().replace({"society": "sociology"})
    if len(told) and (told == ordered[told.index]).all():
        common = common.fillna(pd.Series(ordered, index=name.index))
    tally.mark(
        DERIVED, "the domain, from the prompt's number", table, named.isna() & common.notna()
    )
    return named.fillna(common).fillna("")


def _conditions(name: pd.Series[Any], index: np.ndarray[Any, np.dtype[np.int64]]) -> pd.DataFrame:
    """Return domain, content, overload and control of each row, as our experiment has them.

    The domain is a position. That of abstract content follows from the prompt's number.
    """
    overloaded, kind = name.str.extract(_OVERLOAD), name.str.extract(f"^{_ABSTRACT.pattern}$")[0]
    story = name.replace({"society": "sociology"})
    story = story.where(story.isin(_STORIES), overloaded[0].map(_SHORT))
    place = story.map({each: k for k, each in enumerate(_STORIES)}).astype(float)
    return pd.DataFrame({
        "domain": np.where(kind.isna(), place, index // _OF_DOMAIN % len(_STORIES)),
        "content": kind.fillna("meaningful"), "overload": overloaded[1].fillna("none"),
        "control": overloaded[2] == "ctl",
    })  # fmt: skip


def _answered(table: CellTable, tally: Tally) -> pd.DataFrame:
    """Read answers by the experiment's parser; errors are not answers and are set aside."""
    text = table.cells["response"]
    said = text.fillna("").astype("str")
    failed = said.str.startswith("Error:")
    tally.mark(UNREADABLE, "an error of the provider, no answer", table, failed)
    parser = Collider()
    fates: dict[str, tuple[float, str]] = {}
    for each in said[~failed].unique():
        tagged = _LIKELIHOOD.findall(each)
        bare = tagged[0] if len(tagged) == 1 else each
        if len(tagged) > 1:
            fates[each] = (np.nan, "malformed")
            continue
        answer = parser.parse((), bare.strip(), {})
        value = np.nan if answer.response is None else float(answer.response)
        fates[each] = (value, str(answer.outcome.value))
    response = said.map({each: value for each, (value, _) in fates.items()}).astype(float)
    outcome = said.map({each: fate for each, (_, fate) in fates.items()})
    outcome = outcome.where(~failed, "error")
    for fate in ("malformed", "refused", "empty", "truncated"):
        tally.mark(UNREADABLE, f"an answer that is {fate}", table, outcome == fate)
    frame = pd.DataFrame(
        {"response": response.where(~failed), "outcome": outcome, "raw_text": text}
    )
    sure = said.str.extract(_CONFIDENCE)[0]
    if sure.notna().any():
        frame["stated_confidence"] = pd.to_numeric(sure, errors="coerce")
    return frame


def _settings(frame: pd.DataFrame, tables: Sequence[CellTable]) -> dict[str, Any]:
    """Return the conditions that all trials share."""
    names = [name for name in ("content", "overload", "control") if name in frame]
    same = {name: frame[name].iloc[0] for name in names if frame[name].nunique() == 1}
    if same.get("content", "meaningful") not in CONTENTS:
        del same["content"]
    if set(frame["reasoning"]) == {"chain_of_thought"}:
        same["answer"] = "chain_of_thought"
    return {name: bool(value) if name == "control" else str(value) for name, value in same.items()}


FORMATS = (
    Format(
        "causalign",
        "collider",
        frozenset({"s", "domain", "attr.polarity", "letter.type", "study.type", "trial", "y"}),
        _people,
        also=frozenset({"rt"}),
    ),
    Format(
        "causalign",
        "collider",
        frozenset({"id", "response", "prompt_category", "subject"}),
        _model,
        settings=_settings,
        also=frozenset(
            {"domain", "task", "cntbl_cond", "temperature", "reasoning_effort", "verbosity"}
        ),
    ),
)
