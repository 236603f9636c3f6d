"""What models reveal of their beliefs about chance, beside what they state."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import ArrowException

from knownminds.agents.parameters import Array
from knownminds.environments.record.folders import writable, write_text
from knownminds.environments.record.result import plain
from knownminds.inference.chance.revealed_belief import RevealedBeliefs
from knownminds.inference.chance.wording_variance import joined_wordings
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import versions

from .interview import SENT, Interview
from .questions import RevealQuestion
from .stated_answers import STATED

FILE = "revealed.json"
BELIEFS, REWORDED, ANSWERS = "beliefs.parquet", "reworded.parquet", "stated.parquet"
Who = tuple[str, str]  # a participant, and the form of its questions
NOTES = (
    "The revealed belief is the probability of each outcome, as a whole string that nothing makes "
    "longer, behind a text about chance that breaks off there; of all its spellings, with a space "
    "before it and without. It is set against the exact probability. Outcomes are normalised in "
    "each context; the retained mass is what they had together.",
    "Sampled beliefs: distances of counts are too large by chance, by what stands in the columns "
    "of noise. Top-k beliefs: what the tables do not list may lie on any outcome that can still be "
    "said; intervals of single contexts and of biases hold all that is possible, those of mean "
    "distances do not.",
    "Stated probability: mean of the five options, each by the probability of its letter. Stated "
    "error: 1 - P(correct letter) among the letters.",
)


@dataclass(frozen=True, eq=False)
class Revealed:
    """What participants reveal of their beliefs, and what they state.

    Parameters
    ----------
    beliefs
        By participant and form ("question" or "continuation"), over its contexts.
    stated
        One row per participant and question or outcome that the question is about: participant,
        scenario, context, outcome, truth, stated (its probability as it was stated) and error (1
        where a wrong letter was chosen, or its probability).
    cells
        By scenario and form, a cell of the plan.
    naive, known
        What the tokens of each outcome alone would say, and the beliefs of an agent whose beliefs
        are known, [rows of the beliefs]; NaN where not known.
    reworded
        Of participants with several wordings, the beliefs in all of them, as
        `joined_wordings` makes them; everything else is of the first one.
    options
        The options.
    seconds
        Of computing.
    """

    beliefs: Mapping[Who, RevealedBeliefs]
    stated: pd.DataFrame
    cells: Mapping[tuple[str, str], str] = field(default_factory=dict)
    naive: Mapping[Who, Array] = field(default_factory=dict)
    known: Mapping[Who, Array] = field(default_factory=dict)
    reworded: Mapping[str, RevealedBeliefs] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    seconds: float = 0.0

    @property
    def participants(self) -> tuple[str, ...]:
        """Their names; the first is what others are compared with."""
        return tuple(dict.fromkeys(who for who, _ in self.beliefs))

    def result(self) -> Result:
        """Return the parts of the paper on revealed beliefs, made of these."""
        from knownminds.validation.benchmarks.paper import About, Answers
        from knownminds.validation.benchmarks.revealed_belief import PAPER, material

        options = {"every_measure": True}
        seed = int(self.options.get("seed", 0))
        about = About({}, self.participants, seed=seed, options=options)
        parts = PAPER.parts_of(Answers(pd.DataFrame(), about, {material: self}))
        models = self.options.get("models", {})
        table = pd.DataFrame(
            [
                {
                    "model": who,
                    "form": form,
                    "source": ", ".join(sorted({belief.source for belief in beliefs})),
                    "contexts": len(beliefs),
                    "flagged": int(beliefs.flagged.sum()),
                    "sent": _sent(models.get(who, {})),
                }
                for (who, form), beliefs in self.beliefs.items()
            ]
        )
        return Result(
            "Revealed beliefs about chance",
            tables={"Models": table.set_index(["model", "form"])},
            parts=parts,
            notes=NOTES,
            attempted=sum(map(len, self.beliefs.values())),
            failed=int(sum(beliefs.flagged.sum() for beliefs in self.beliefs.values())),
            options={k: v for k, v in self.options.items() if k not in ("models", "command")},
            command=str(self.options.get("command", "")),
            seconds=self.seconds,
            versions=self.versions,
        )

    def __str__(self) -> str:
        """The parts as text."""
        return str(self.result())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Keep beliefs, stated answers and options; `read_revealed` reads them."""
        with writable(folder) as path:
            (path / FILE).unlink(missing_ok=True)  # by which the folder is known: it comes last
            more = {
                kind: np.concatenate([getattr(self, kind)[who] for who in self.beliefs])
                for kind in ("naive", "known")
            }
            parts = [(*who, read) for who, read in self.beliefs.items()]
            _stacked(parts).assign(**more).to_parquet(path / BELIEFS, index=False)
            self.stated.to_parquet(path / ANSWERS, index=False)
            if self.reworded:
                again = [(who, "", read) for who, read in self.reworded.items()]
                _stacked(again).to_parquet(path / REWORDED, index=False)
            content = {name: getattr(self, name) for name in ("options", "versions", "seconds")}
            write_text(path / FILE, json.dumps(plain(content), indent=1))


reveal = verb(RevealQuestion, __name__)


def compute(question: RevealQuestion) -> Revealed:
    """Answer `reveal`: ask models for the probability of each outcome, and for stated answers."""
    begin = time.perf_counter()
    if not question.llm and not question.earlier:
        raise ValueError("At least one model reveals its beliefs; got none. Name it with --llm.")
    before = [read_revealed(folder) for folder in question.earlier]
    beliefs, naive, known, reworded = (
        {who: value for old in before for who, value in getattr(old, kind).items()}
        for kind in ("beliefs", "naive", "known", "reworded")
    )
    how: dict[str, Any] = {
        who: value for old in before for who, value in old.options["models"].items()
    }
    stated = [old.stated for old in before]
    for one in question.llm:
        answers = Interview(question).ask(one)
        name = answers.name
        while name in how:
            name += "'"
        who, read = (name, answers.options["form"]), answers.contexts
        beliefs[who], naive[who], known[who] = read.beliefs, read.naive, read.known
        if answers.reworded:
            reworded[name] = joined_wordings([read.beliefs, *answers.reworded])
        stated.append(answers.stated.rename(columns={"model": "participant"}))
        stated[-1]["participant"] = name
        how[name] = answers.options
    some = [frame for frame in stated if len(frame)]
    columns = ["participant", *STATED[1:]]
    table = pd.concat(some, ignore_index=True) if some else pd.DataFrame(columns=columns)
    facts: dict[str, Any] = {"scenarios": list(question.scenarios), "seed": question.seed}
    facts |= {"only": question.only} if question.only else {}
    facts |= {"command": question.command_line(), "models": how}
    seconds = time.perf_counter() - begin + sum(old.seconds for old in before)
    result = Revealed(
        beliefs, table, naive=naive, known=known, reworded=reworded, options=facts, seconds=seconds
    )
    if question.out is not None:
        result.save(question.out)
    return result


def read_revealed(folder: str | os.PathLike[str]) -> Revealed:
    """Read what `reveal` left in a folder, without a call.

    Raises
    ------
    ValueError
        If the folder holds no such result.
    """
    path = Path(folder)
    try:
        content = json.loads((path / FILE).read_text(encoding="utf-8"))
        table = pd.read_parquet((path / BELIEFS).absolute())
        stated = pd.read_parquet((path / ANSWERS).absolute())
        several = (path / REWORDED).absolute()
        again = pd.read_parquet(several) if several.exists() else pd.DataFrame({"model": []})
    except (OSError, json.JSONDecodeError, ArrowException) as error:
        raise ValueError(
            f"Beliefs are read from a folder of `knownminds reveal`; {path} cannot be read: {error}"
        ) from None
    parts = {
        (str(who), str(form)): rows
        for (who, form), rows in table.groupby(["model", "form"], sort=False)
    }
    return Revealed(
        beliefs={who: RevealedBeliefs.of_frame(rows) for who, rows in parts.items()},
        stated=stated,
        naive={who: rows["naive"].to_numpy(dtype=float) for who, rows in parts.items()},
        known={who: rows["known"].to_numpy(dtype=float) for who, rows in parts.items()},
        reworded={
            str(who): RevealedBeliefs.of_frame(rows)
            for who, rows in again.groupby("model", sort=False)
        },
        **content,
    )


def read_result(folder: str | os.PathLike[str]) -> Result:
    """Return the parts of what `reveal` left in a folder."""
    return read_revealed(folder).result()


def _sent(how: Mapping[str, Any]) -> str:
    """Say in which form a model got its questions; empty where that is not known."""
    return "; ".join(f"{what} {SENT[form]}" for what, form in how.get("sent", {}).items())


def _stacked(parts: Sequence[tuple[str, str, RevealedBeliefs]]) -> pd.DataFrame:
    """Return the tables of several beliefs one below the other."""
    frames = [read.to_frame().assign(model=who, form=form) for who, form, read in parts]
    return pd.concat(frames, ignore_index=True)
