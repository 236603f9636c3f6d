"""One model answers everything: its beliefs about contexts, and what it states of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.calling import Calling, Reach, Sampling, part_of
from knownminds.environments import session_stream
from knownminds.environments.chance.context_grid import ContextGrid, Form
from knownminds.inference.chance.revealed_belief import (
    Belief,
    RevealedBeliefs,
    Source,
    context_name,
)
from knownminds.llm_adapters import Adapter, Failed, Reply, TellsContinuations
from knownminds.llm_adapters.configuration import Participant
from knownminds.llm_adapters.continuations.continuation_probabilities import (
    ContinuationProbabilities,
)
from knownminds.llm_adapters.continuations.continuation_tree import extends
from knownminds.llm_adapters.providers.token_sampler import TokenSampler
from knownminds.llm_adapters.runs.ledger import Ledger, stays_in
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.llm_adapters.runs.run_result import Run
from knownminds.llm_adapters.runs.runner import RunOptions
from knownminds.validation.costs.connect import (
    connect,
    known_agent,
    price_for,
    run_sessions,
    wait_for,
)
from knownminds.validation.costs.questions import RUNS

from .asked_contexts import environments_of, facts_of, reworded_of
from .chance_items import ChanceItem, contexts_of, question_about, questions_of
from .questions import GRID, RevealQuestion
from .stated_answers import Readings, stated_frame

# In which form prompts reach a model.
SENT = {
    "text": "as plain text, without a chat template",
    "template": "through the model's chat template",
    "messages": "as messages, which the interface puts into a form of its own",
}
KNOWN = 31  # of the address of what a known agent says
Asked = Literal["contexts", "questions"]
# Reads beliefs about the contexts of a grid, or about questions, in the wording of a number.
Reader = Callable[[Asked, Sequence[ContextGrid], int], Readings]


@dataclass(frozen=True)
class AskedModel:
    """What one model has answered.

    Parameters
    ----------
    contexts : its beliefs
    stated : one row per context and outcome that the question is about, see `STATED`
    options : how its beliefs were read
    reworded : its beliefs about the same contexts in each further wording
    """

    name: str
    contexts: Readings
    stated: pd.DataFrame
    options: Mapping[str, Any]
    reworded: Sequence[RevealedBeliefs] = ()


@dataclass(frozen=True)
class Interview:
    """A question, as it is put to models."""

    question: RevealQuestion

    def ask(self, llm: str | Adapter) -> AskedModel:
        """Ask one model everything."""
        if not isinstance(llm, str):
            return self._ask_adapter(llm, Participant(f"{llm.provider}:{llm.model}"))
        who = Participant.read(llm)
        if llm.partition(":")[0] == "synthetic":
            _check_drawn(who)
            return self._ask_agent(llm)
        first = environments_of(self.question, "question")[0]
        adapter = connect(who.llm, first, seed=self.question.seed, reach=self._reach)
        try:
            return self._ask_adapter(adapter, who)
        finally:
            wait_for(adapter.close())

    def _ask_adapter(self, adapter: Adapter, who: Participant) -> AskedModel:
        """Ask a language model."""
        question = self.question
        source = source_of(adapter, question.source)
        if source == "exact":
            _check_drawn(who)
        form = question.form or ("continuation" if source == "exact" else "question")
        plain = source == "exact" and form == "continuation" and not question.chat

        def read(what: Asked, grid: Sequence[ContextGrid], wording: int) -> Readings:
            if source != "exact":
                return self._read_answers(adapter, grid, source, who)
            assert isinstance(adapter, TellsContinuations)
            items = self._items(what, grid, plain)
            return exact_beliefs(adapter, items, question)

        first = {"contexts": environments_of(question, form)[:1]}
        if question.stated:
            first["questions"] = environments_of(question, "stated")[:1]
        options = facts_of(question, source, form)
        if source == "exact":
            options["chat"] = question.chat
        sent = {
            what: sent_as(adapter, self._items(what, grid, plain)) for what, grid in first.items()
        }
        return self._asked(str(who), read, form, question.stated, options | {"sent": sent})

    def _ask_agent(self, llm: str) -> AskedModel:
        """Ask an agent whose beliefs are known."""
        question, model = self.question, llm.partition(":")[2]
        source, form = question.source or "exact", question.form or "continuation"

        def read(what: Asked, grid: Sequence[ContextGrid], wording: int) -> Readings:
            agents = {one: known_agent(model, one, question.truth) for one in grid}
            items = self._items(what, grid, True)
            return known_beliefs(agents, items, question, source, wording)

        agent = known_agent(model, environments_of(question, form)[0], question.truth)
        stated = question.stated and agent.plays(environments_of(question, "stated")[0])
        options = facts_of(question, source, form) | ({} if stated else {"stated": False})
        options |= {"tokens": question.tokens, "space": question.space, "leak": question.leak}
        options |= {"truth": question.truth}
        return self._asked(f"{llm} ({question.tokens})", read, form, stated, options)

    def _asked(
        self, name: str, read: Reader, form: Form, stated: bool, options: Mapping[str, Any]
    ) -> AskedModel:
        """Ask about all contexts, then in questions, then in other words."""
        question = self.question
        further = reworded_of(question, form)  # before the first question: there may be too few
        contexts = read("contexts", environments_of(question, form), 1)
        answers = read("questions", environments_of(question, "stated"), 1) if stated else None
        reworded = [read("contexts", grid, k).beliefs for k, grid in enumerate(further, start=2)]
        frame = stated_frame(name, contexts.beliefs, answers)
        return AskedModel(name, contexts, frame, options, reworded)

    def _items(self, what: str, grid: Sequence[ContextGrid], plain: bool) -> list[ChanceItem]:
        if what == "questions":
            return questions_of(grid, self.question.seed)
        return contexts_of(grid, plain=plain)

    @property
    def _reach(self) -> Reach:
        """Where a provider is."""
        return Reach(**part_of(Reach, self.question))

    def _read_answers(
        self, adapter: Adapter, grid: Sequence[ContextGrid], source: Source, who: Participant
    ) -> Readings:
        """Let a language model answer in sessions with one ledger, and read its beliefs."""
        question = self.question
        settings = Sampling(temperature=question.temperature, max_tokens=question.max_tokens)
        if source == "top-k":
            settings = replace(settings, top_log_probabilities=question.top)
        settings = who.settings(settings)
        plainly = re.sub(r"[^\w.=-]+", "-", str(who)).strip("-")
        folder = Path(question.out or Path(RUNS) / f"reveal-{plainly}") / f"answers-{plainly}"
        price = price_for(who.text, {}, elsewhere=question.base_url is not None)
        answers: list[ItemAnswer] = []
        for k, environment in enumerate(grid):
            result = run_sessions(
                environment,
                adapter,
                sessions=question.draws,
                seed=question.seed,
                out=folder / _folder_of(environment),
                within=folder,
                how=RunOptions(
                    **part_of(Calling, question),
                    settings=settings,
                    participant=who.own_name,
                    price=price,
                ),
            )
            if result.stopped:
                raise ValueError(
                    f"{result.stopped.rstrip('.')}.{stays_in(folder)} The same command goes on."
                )
            answers += item_answers(result, environment)
            if question.progress is not None:
                question.progress(k + 1, len(grid))
        return beliefs_of_answers(answers, source=source, threshold=question.threshold)


def _check_drawn(who: Participant) -> None:
    """Raise ValueError if settings are given where exact probabilities are read."""
    if who.sampling or who.name:
        raise ValueError(
            f"Exact probabilities are read before anything is drawn, without settings; {who.text} "
            "has some. Name PROVIDER:MODEL alone."
        )


def _folder_of(environment: ContextGrid) -> str:
    size = [environment.settings[name] for name in GRID if name in environment.settings]
    words = environment.settings.get("templates")
    names = [environment.name, *map(str, size), environment.form, *([words] if words else [])]
    return "-".join(names)


def source_of(adapter: Adapter, source: Source | None) -> Source:
    """Return how an adapter's beliefs can be read; the best way, if none is named.

    Raises
    ------
    Failed : If it lacks what the options need, or has no log-probabilities and states nothing.
    """
    exact, model = isinstance(adapter, TellsContinuations), adapter.model
    some = "top_log_probabilities" in adapter.heeds
    why = ""
    if source == "exact" and not exact:
        why = (
            f"The exact probability of continuations is known of local models; {model} does not "
            f"tell it. Use --source {'top-k' if some else 'sampled'}."
        )
    elif source == "top-k" and not some:
        why = (
            f"{model} tells no log-probabilities of its tokens. Use --source sampled, which counts "
            "its answers."
        )
    elif source is None and not exact and not some:
        why = (
            f"Beliefs are read from log-probabilities of tokens; {model} tells none. Say --source "
            "sampled to count its answers, with --draws for how many."
        )
    if why:
        raise Failed(why, "stop", "setting", charged=False)
    return source or ("exact" if exact else "top-k")


def sent_as(adapter: Adapter, items: Sequence[ChanceItem]) -> str:
    """Say in which form a model gets prompts: one of `SENT`."""
    if not isinstance(adapter, TellsContinuations):
        return "messages"
    return "template" if all(adapter.templated(item.prompt) for item in items) else "text"


def exact_beliefs(
    adapter: TellsContinuations, items: Sequence[ChanceItem], question: RevealQuestion
) -> Readings:
    """Ask a local model how probable each outcome is as continuation, all items in one pass."""
    found = adapter.log_probabilities(
        [item.prompt for item in items],
        [item.set_up.outcomes for item in items],
        progress=question.progress,
    )
    beliefs = [_exact(item, exact, question) for item, exact in zip(items, found, strict=True)]
    return _readings(items, beliefs, [exact.naive[0] for exact in found])


def known_beliefs(
    agents: Mapping[ContextGrid, Model],
    items: Sequence[ChanceItem],
    question: RevealQuestion,
    source: Source,
    wording: int = 1,
) -> Readings:
    """Ask an agent whose beliefs are known, seen through a way of cutting what it says into tokens.

    Parameters
    ----------
    agents : Who plays each experiment.
    wording : The number of the wording: what is drawn in one is not drawn again in another.
    """
    beliefs, naive, known = [], [], []
    for k, item in enumerate(items):
        agent = agents[item.environment]
        agent.reset()
        p = np.asarray(agent.probabilities(item.observation), dtype=float)
        speaker = TokenSampler(
            item.set_up.outcomes, p / p.sum(), question.tokens,
            space=question.space, leak=question.leak,
        )  # fmt: skip
        rng = session_stream(question.seed, KNOWN, k, *([wording] if wording > 1 else []))
        exact = speaker.continuation_probabilities()
        if source == "exact":
            beliefs.append(_exact(item, exact, question))
        elif source == "top-k":
            replies = [speaker.reply(rng, top=question.top) for _ in range(question.draws)]
            beliefs.append(_listed(item, replies, question.threshold))
        else:
            counts, others = speaker.counts(rng, question.draws)
            beliefs.append(Belief.counted(item.set_up, counts, others, question.threshold))
        naive.append(exact.naive[0])
        known.append(speaker.probabilities)
        if question.progress is not None:
            question.progress(k + 1, len(items))
    return _readings(items, beliefs, naive, known)


class ItemAnswer(NamedTuple):
    """An answer of a run.

    Parameters
    ----------
    item : the question
    action : the outcome, or the letter, that was read; None if none could be
    reply : what came
    """

    item: ChanceItem
    action: int | None
    reply: Reply


def item_answers(run: Run, environment: ContextGrid) -> Iterator[ItemAnswer]:
    """Yield the answers of a run; calls that failed brought none and are left out."""
    if run.trials is None:
        return
    frame, seed = run.trials.frame, int(run.configuration["seed"])
    contexts = {}
    if environment.form != "stated":
        contexts = {item.context: item for item in contexts_of([environment], plain=False)}
    with Ledger.read(run.folder) as ledger:
        for session in range(run.n_sessions):
            rows = frame[frame["session"].astype(str) == str(session)]
            replies = {
                attempt.key[1]: attempt.reply
                for attempt in ledger.attempts(session)
                if attempt.reply is not None
            }
            fields = environment.fields.shown
            table = environment.draw(session_stream(seed, *RUN, session)).table
            for row in rows.to_dict("records"):
                trial = int(row["trial"])
                if trial not in replies:
                    continue
                observation = {"trial": trial, **{name: int(table[name][trial]) for name in fields}}
                if int(row["cell"]) != observation["cell"]:
                    raise ValueError(
                        f"Session {session} of {run.folder} is none of {environment!r} with the "
                        f"seed {seed}. Read runs with the settings they were made with."
                    )
                name = context_name(
                    environment.factors, [observation[n] for n in environment.factors]
                )
                item = contexts[name] if contexts else question_about(environment, observation)
                given = row["action"]
                read = given is not None and np.isfinite(given) and given >= 0
                yield ItemAnswer(item, int(given) if read else None, replies[trial])


def beliefs_of_answers(
    answers: Sequence[ItemAnswer], *, source: Source, threshold: float
) -> Readings:
    """Put together what the answers to each context, or question, tell."""
    by_name: dict[str, list[ItemAnswer]] = {}
    for answer in answers:
        by_name.setdefault(answer.item.set_up.name, []).append(answer)
    if not by_name:
        raise ValueError("Beliefs are read from answers; the run has none. Resume it.")
    beliefs, items = [], []
    for several in by_name.values():
        item = several[0].item
        if source == "top-k":
            beliefs.append(_listed(item, [answer.reply for answer in several], threshold))
        else:
            given = [answer.action for answer in several if answer.action is not None]
            counts = np.bincount(given, minlength=len(item.set_up.outcomes))
            others = len(several) - len(given)
            beliefs.append(Belief.counted(item.set_up, counts, others, threshold))
        items.append(item)
    return _readings(items, beliefs)


def _readings(
    items: Sequence[ChanceItem],
    beliefs: Sequence[Belief],
    naive: Sequence[Array] = (),
    known: Sequence[Array] = (),
) -> Readings:
    """Join beliefs; the naive reading and the known belief are NaN where there is none."""
    joined = RevealedBeliefs(tuple(beliefs))
    nothing = np.full(len(joined.context), np.nan)
    whole = (np.concatenate(parts) if len(parts) else nothing for parts in (naive, known))
    return Readings(items, joined, *whole)


def _exact(item: ChanceItem, exact: ContinuationProbabilities, question: RevealQuestion) -> Belief:
    probability = np.exp(exact.log_probabilities[0])
    return Belief.of(item.set_up, "exact", probability, question.threshold)


def _listed(item: ChanceItem, replies: Sequence[Reply], threshold: float) -> Belief:
    tables = [reply.log_probabilities for reply in replies]
    return Belief.top_k(item.set_up, tables, extends, threshold)
