"""One model is asked everything: its beliefs about contexts, and what it states of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from knownminds.environments.chance.outcome_grid import BrokenOff, Form
from knownminds.inference.chance.revealed_belief import RevealedBeliefs, Source
from knownminds.llm_adapters import Adapter, Sampling, TellsOutcomes
from knownminds.validation.costs.connect import (
    RUNS,
    connect,
    known_agent,
    price_for,
    run,
    wait_for,
)

from .asked_beliefs import (
    ItemAnswer,
    Progress,
    Readings,
    beliefs_of_answers,
    exact_beliefs,
    item_answers,
    known_beliefs,
    sent_as,
    source_of,
)
from .chance_items import ChanceItem, contexts_of, questions_of
from .questions import GRID, RevealQuestion
from .stated_answers import stated_frame


@dataclass(frozen=True)
class AskedModel:
    """What one model has told.

    Parameters
    ----------
    stated : one row per context and outcome that was asked about, see `STATED`
    options : how it was asked
    reworded : its beliefs about the same contexts in each further wording
    """

    name: str
    contexts: Readings
    stated: pd.DataFrame
    options: Mapping[str, Any]
    reworded: Sequence[RevealedBeliefs] = ()


@dataclass(frozen=True)
class Interview:
    """A question, and what is needed to put it to models.

    Parameters
    ----------
    settings : of a provider's model
    folder : where ledgers of a provider's model are kept; None for one in `runs`
    connection : further arguments of `connect` and `run`
    """

    question: RevealQuestion
    settings: Sampling | None = None
    folder: Path | None = None
    progress: Progress | None = None
    connection: Mapping[str, Any] = field(default_factory=dict)

    def ask(self, llm: str | Adapter) -> AskedModel:
        """Ask one model everything."""
        if isinstance(llm, str) and llm.partition(":")[0] == "synthetic":
            return self._known(llm)
        if not isinstance(llm, str):
            return self._asked_of(llm, f"{llm.provider}:{llm.model}")
        first = self.question.environments("question")[0]
        adapter = connect(llm, first, seed=self.question.seed, **self._reach)
        try:
            return self._asked_of(adapter, llm)
        finally:
            wait_for(adapter.close())

    def _asked_of(self, adapter: Adapter, name: str) -> AskedModel:
        question = self.question
        source = source_of(adapter, question.source)
        form = question.form or ("continuation" if source == "exact" else "question")
        plain = source == "exact" and form == "continuation" and not question.chat
        grids = {"contexts": question.environments(form)}
        if question.stated:
            grids["questions"] = question.environments("stated")

        def items_of(what: str, grid: Sequence[BrokenOff]) -> list[ChanceItem]:
            if what == "questions":
                return questions_of(grid, question.seed)
            return contexts_of(grid, plain=plain)

        sent = {what: sent_as(adapter, items_of(what, grid[:1])) for what, grid in grids.items()}

        def readings(what: str, grid: Sequence[BrokenOff]) -> Readings:
            if source == "exact":
                assert isinstance(adapter, TellsOutcomes)
                return exact_beliefs(adapter, items_of(what, grid), question, self.progress)
            return self._answered(adapter, grid, source, name)

        further = question.reworded(form)  # before anything is asked: there may be too few
        read = {what: readings(what, grid) for what, grid in grids.items()}
        again = [readings("contexts", grid).beliefs for grid in further]
        options = question.facts(source, form)
        if source == "exact":
            options |= {"chat": question.chat, "signs": question.signs}
        return _asked(name, read, options | {"sent": sent}, again)

    def _known(self, llm: str) -> AskedModel:
        """Ask an agent whose beliefs are known."""
        question, model = self.question, llm.partition(":")[2]
        source, form = question.source or "exact", question.form or "continuation"

        def read_in(form: Form, grid: Sequence[BrokenOff], wording: int = 1) -> Readings:
            agents = {one: known_agent(model, one, question.truth) for one in grid}
            stated = form == "stated"
            items = questions_of(grid, question.seed) if stated else contexts_of(grid, plain=True)
            return known_beliefs(agents, items, question, source, self.progress, wording)

        further = question.reworded(form)
        read = {"contexts": read_in(form, question.environments(form))}
        again = [read_in(form, grid, k).beliefs for k, grid in enumerate(further, start=2)]
        options = question.facts(source, form)
        options |= {"tokens": question.tokens, "space": question.space, "leak": question.leak}
        options |= {"truth": question.truth}
        agent = known_agent(model, read["contexts"].items[0].environment, question.truth)
        if question.stated and agent.plays(question.environments("stated")[0]):
            read["questions"] = read_in("stated", question.environments("stated"))
        else:
            options |= {"stated": False}
        return _asked(f"{llm} ({question.tokens})", read, options, again)

    @property
    def _reach(self) -> dict[str, Any]:
        """What says where a provider is."""
        given = {k: self.connection.get(k) for k in ("base_url", "key_variable", "timeout")}
        return {name: value for name, value in given.items() if value is not None}

    def _answered(
        self, adapter: Adapter, grid: Sequence[BrokenOff], source: Source, name: str
    ) -> Readings:
        """Let a language model answer in sessions with a ledger each, and read its beliefs."""
        question, settings = self.question, self.settings or Sampling()
        if source == "top-k":
            settings = replace(settings, top_log_probabilities=question.top)
        called = re.sub(r"[^\w.=-]+", "-", name).strip("-")
        folder = (self.folder or Path(RUNS) / f"reveal-{called}") / f"answers-{called}"
        how = {k: v for k, v in self.connection.items() if k not in self._reach and v is not None}
        how.setdefault("price", price_for(name, {}, elsewhere="base_url" in self._reach))
        answers: list[ItemAnswer] = []
        for k, environment in enumerate(grid):
            result = run(
                environment,
                adapter,
                sessions=question.draws,
                seed=question.seed,
                out=folder / _folder_of(environment),
                settings=settings,
                **how,
            )
            if result.stopped:
                raise ValueError(
                    f"{result.stopped} What was paid for stays in {folder}; the same command goes "
                    "on."
                )
            answers += item_answers(result, environment)
            if self.progress is not None:
                self.progress(k + 1, len(grid))
        return beliefs_of_answers(answers, source=source, threshold=question.threshold)


def _asked(
    name: str,
    read: Mapping[str, Readings],
    options: Mapping[str, Any],
    reworded: Sequence[RevealedBeliefs],
) -> AskedModel:
    contexts = read["contexts"]
    stated = stated_frame(name, contexts.beliefs, read.get("questions"))
    return AskedModel(name, contexts, stated, options, reworded)


def _folder_of(environment: BrokenOff) -> str:
    size = [environment.settings[name] for name in GRID if name in environment.settings]
    words = environment.settings.get("templates")
    told = [environment.name, *map(str, size), environment.form, *([words] if words else [])]
    return "-".join(told)
