"""`reveal`: models are asked for the probability of each outcome of chance."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from knownminds.inference.chance.wording_variance import joined_wordings
from knownminds.llm_adapters import Failed
from knownminds.validation.benchmarks.paper import About, Answers
from knownminds.validation.benchmarks.revealed_belief import PAPER, material
from knownminds.validation.engine.question import verb
from knownminds.validation.studies import check_same_question

from .interview import SENT, Interview
from .questions import RevealQuestion
from .revealed import RevealAnswer, Revealed, read_revealed
from .stated_answers import STATED

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


reveal = verb(RevealQuestion, __name__)


def compute(question: RevealQuestion) -> RevealAnswer:
    """Answer `reveal`: ask models for the probability of each outcome, and for stated answers."""
    begin = time.perf_counter()
    if not question.llm and not question.earlier:
        raise ValueError("At least one model reveals its beliefs; got none. Name it with --llm.")
    if question.out is not None and question.out not in question.earlier:  # before any work
        check_same_question(question.command_line(), question.out)
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
        try:
            answers = Interview(question).ask(one)
        except Failed as error:
            raise ValueError(str(error)) from None
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
    revealed = Revealed(
        beliefs, table, naive=naive, known=known, reworded=reworded, options=facts, seconds=seconds
    )
    if question.out is not None:
        revealed.save(question.out)
    return answer_of(revealed)


def answer_of(revealed: Revealed) -> RevealAnswer:
    """Return the parts of the paper on revealed beliefs, made of beliefs and stated answers."""
    options = {"every_measure": True}
    seed = int(revealed.options.get("seed", 0))
    about = About({}, revealed.participants, seed=seed, options=options)
    parts = PAPER.parts_of(Answers(pd.DataFrame(), about, {material: revealed}))
    models = revealed.options.get("models", {})
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
            for (who, form), beliefs in revealed.beliefs.items()
        ]
    )
    answer = RevealAnswer(
        "Revealed beliefs about chance",
        tables={"Models": table.set_index(["model", "form"])},
        parts=parts,
        notes=NOTES,
        attempted=sum(map(len, revealed.beliefs.values())),
        failed=int(sum(beliefs.flagged.sum() for beliefs in revealed.beliefs.values())),
        options={k: v for k, v in revealed.options.items() if k not in ("models", "command")},
        command=str(revealed.options.get("command", "")),
        seconds=revealed.seconds,
        versions=revealed.versions,
        revealed=revealed,
    )
    led = answer.led_by_estimates()
    return replace(answer, leads=led.leads, tables=led.tables)


def read_result(folder: str | os.PathLike[str]) -> RevealAnswer:
    """Return the parts of what `reveal` left in a folder."""
    return answer_of(read_revealed(folder))


def _sent(how: Mapping[str, Any]) -> str:
    """Say in which form a model got its questions; empty where that is not known."""
    return "; ".join(f"{what} {SENT[form]}" for what, form in how.get("sent", {}).items())
