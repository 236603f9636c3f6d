"""Judgements on colliders as causAIgn keeps them: people's table and models' answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import Collider

from .account import DERIVED, LEFT_OUT, UNREADABLE, Table, Tally
from .formats import Format
from .tables import answers, identified, stimuli, within

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


def _people(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read people's judgements, 0 to 100."""
    table = identified(table, "s", tally)
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
    })  # fmt: skip
    if "rt" in people:
        frame["rt_s"] = within(table, "rt", tally, least=0)
    return frame


def _model(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read models' answers; the question follows from the number of the prompt."""
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
    story, content, control = _stories(table, index, tally)
    nameless = right & story.isna()
    tally.mark(LEFT_OUT, "no domain is named, so that the content is unknown", table, nameless)
    right &= ~nameless
    wanted = given.get("control")
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
    kind = _text(cells, "prompt_category").str.strip()
    version = table.name.split("_v_")[0].split("_")[0] if "_v_" in table.name else ""
    temperature = _text(cells, "temperature")
    effort = _text(cells, "reasoning_effort")
    who = _text(cells, "subject").str.cat(effort, sep=" ").str.strip()
    prompt = kind + ("/" + temperature).where(temperature != "", "")
    nth = pd.DataFrame({"w": who, "a": prompt, "i": index}).groupby(["w", "a", "i"]).cumcount()
    tally.mark(DERIVED, "repeated passes over the prompts separated by their order", table, nth > 0)
    return frame.assign(
        subject=who, session=prompt + ("/" + nth.astype("str")).where(nth > 0, ""),
        trial=index, task=task[kept].to_numpy(), queried=_QUERIED[index % 20],
        present=_PRESENT[index % 20], domain=story[kept].to_numpy(), sense=sense[kept].to_numpy(),
        content_name=content[kept].to_numpy(), prompt_category=kind, temperature=temperature,
        reasoning_effort=effort, verbosity=_text(cells, "verbosity"), prompt_version=version,
    )  # fmt: skip


def _text(cells: pd.DataFrame, column: str) -> pd.Series[Any]:
    """Return a column of conditions; what says that there is none ("N/A") is empty."""
    if column not in cells:
        return pd.Series("", index=cells.index)
    return cells[column].fillna("").astype("str").str.strip().replace("N/A", "")


def _stories(
    table: Table, index: np.ndarray[Any, np.dtype[np.int64]], tally: Tally
) -> tuple[pd.Series[Any], pd.Series[Any], pd.Series[Any]]:
    """Return the story of each row, the name of its content, and whether it is a control.

    A row without a domain, as errors are, has that of the other rows with such numbers. Where no
    row of a file names one, the story is missing.
    """
    name = _text(table.cells, "domain")
    named = name.where(name != "")
    domains = named.groupby(index // 160)
    common = domains.transform("first").where(domains.transform("nunique") == 1)
    tally.mark(
        DERIVED, "the domain, from the prompt's number", table, named.isna() & common.notna()
    )
    name = named.fillna(common).fillna("")
    overloaded = name.str.extract(_OVERLOAD)
    story = name.replace({"society": "sociology"})
    story = story.where(story.isin(_STORIES), overloaded[0].map(_SHORT))
    abstract = name.str.startswith("abs")
    position = {each: str(k) for k, each in enumerate(name[abstract].unique())}
    if len(position) > 3:
        raise ValueError(
            f"A collider has three stories at most; {table.file} has {len(position)} abstract "
            f"ones: {', '.join(position)}. Import some at a time: --where domain={name[0]}."
        )
    story = story.where(~abstract, name.map(position))
    return story, name, overloaded[2] == "ctl"


def _answered(table: Table, tally: Tally) -> pd.DataFrame:
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


def _settings(frame: pd.DataFrame, tables: Sequence[Table]) -> dict[str, Any]:
    if "content_name" not in frame:
        return {}
    table = frame["content_name"].str.extract(_OVERLOAD).dropna()
    if not len(table):
        return {}
    kinds = table[1].unique()
    if len(kinds) > 1:
        raise ValueError(
            f"Settings belong to one experiment; the files hold overloads {', '.join(kinds)}. "
            "Import them apart."
        )
    return {"overload": kinds[0], "control": bool((table[2] == "ctl").all())}


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
        also=frozenset({"domain", "task", "cntbl_cond"}),
    ),
)
