"""Ways of asking a participant for the probability of what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.environments.chance.outcome_grid import BrokenOff
from knownminds.inference.chance.revealed_belief import RevealedBeliefs, Source, context_name
from knownminds.llm_adapters import (
    Adapter,
    Failed,
    Reply,
    TellsOutcomes,
    TokenLogProbability,
)
from knownminds.llm_adapters.outcomes.outcome_probabilities import OutcomeProbabilities
from knownminds.llm_adapters.outcomes.outcome_tree import extends
from knownminds.llm_adapters.providers.token_sampler import TokenSampler
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.llm_adapters.runs.run_result import Run

from .chance_items import ChanceItem, contexts_of, question_about
from .questions import RevealQuestion

# In which form prompts reach a model.
SENT = {
    "text": "as plain text, without a chat template",
    "template": "through the model's chat template",
    "messages": "as messages, which the interface puts into a form of its own",
}
KNOWN = 31  # of the address of what a known agent says
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Readings:
    """What a participant believes about some items: a table, and the naive reading beside it.

    Parameters
    ----------
    items : what was asked: contexts, or questions whose outcomes are letters
    beliefs : of the items, in their order
    naive : probability of the tokens of each outcome alone, normalised, [rows]; NaN if unknown
    known : the belief of an agent whose belief is known, [rows]; NaN of others
    """

    items: Sequence[ChanceItem]
    beliefs: RevealedBeliefs
    naive: Array
    known: Array


def source_of(adapter: Adapter, source: Source | None) -> Source:
    """Return how an adapter's beliefs can be read; the best way, if none is named.

    Raises
    ------
    Failed
        If it cannot do what is asked of it, or has no log-probabilities and nothing is asked.
    """
    exact = isinstance(adapter, TellsOutcomes)
    some = "top_log_probabilities" in adapter.heeds
    if source == "exact" and not exact:
        raise _refused(
            f"The exact probability of whole outcomes is known of local models; {adapter.model} "
            f"does not tell it. Use --source {'top-k' if some else 'sampled'}."
        )
    if source == "top-k" and not some:
        raise _refused(
            f"{adapter.model} tells no log-probabilities of its tokens. Use --source sampled, "
            "which counts its answers."
        )
    if source is not None:
        return source
    if not exact and not some:
        raise _refused(
            f"Beliefs are read from log-probabilities of tokens; {adapter.model} tells none. Say "
            "--source sampled to count its answers, with --draws for how many."
        )
    return "exact" if exact else "top-k"


def _refused(told: str) -> Failed:
    return Failed(told, "stop", "setting", charged=False)


def sent_as(adapter: Adapter, items: Sequence[ChanceItem]) -> str:
    """Say in which form a model gets prompts: one of `SENT`."""
    if not isinstance(adapter, TellsOutcomes):
        return "messages"
    return "template" if all(adapter.templated(item.prompt) for item in items) else "text"


def exact_beliefs(
    adapter: TellsOutcomes,
    items: Sequence[ChanceItem],
    question: RevealQuestion,
    progress: Progress | None = None,
) -> Readings:
    """Ask a local model for the probability of each whole outcome, all items in one pass."""
    told = adapter.log_probabilities(
        [item.prompt for item in items],
        [item.set_up.outcomes for item in items],
        signs=question.signs,
        progress=progress,
    )
    beliefs = [_exact(item, own, question) for item, own in zip(items, told, strict=True)]
    naive = np.concatenate([own.naive[0] for own in told])
    return Readings(items, RevealedBeliefs.join(*beliefs), naive, np.full(len(naive), np.nan))


def known_beliefs(
    agents: Mapping[BrokenOff, Agent],
    items: Sequence[ChanceItem],
    question: RevealQuestion,
    source: Source,
    progress: Progress | None = None,
    wording: int = 1,
) -> Readings:
    """Ask an agent whose beliefs are known, seen through a way of cutting what it says into tokens.

    Parameters
    ----------
    agents
        Who plays each experiment.
    wording
        The number of the wording: what is drawn in one is not drawn again in another.
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
        told = speaker.outcome_probabilities()
        if source == "exact":
            beliefs.append(_exact(item, told, question))
        elif source == "top-k":
            replies = [speaker.reply(rng, top=question.top) for _ in range(question.draws)]
            tables = [reply.log_probabilities for reply in replies]
            beliefs.append(_listed(item, tables, question.threshold))
        else:
            counts, others = speaker.counts(rng, question.draws)
            beliefs.append(_counted(item, counts, others, question.threshold))
        naive.append(told.naive[0])
        known.append(speaker.probabilities)
        if progress is not None:
            progress(k + 1, len(items))
    joined = RevealedBeliefs.join(*beliefs)
    return Readings(items, joined, np.concatenate(naive), np.concatenate(known))


class ItemAnswer(NamedTuple):
    """An answer of a run.

    Parameters
    ----------
    item : what was asked
    action : the outcome, or the letter, that was read; None if none could be
    reply : what came
    """

    item: ChanceItem
    action: int | None
    reply: Reply


def item_answers(run: Run, environment: BrokenOff) -> Iterator[ItemAnswer]:
    """Yield the answers of a run; calls that failed brought none and are left out."""
    if run.trials is None:
        return
    frame, seed = run.trials.frame, int(run.configuration["seed"])
    contexts = {}
    if environment.form != "stated":
        contexts = {item.context: item for item in contexts_of([environment], plain=False)}
    with Ledger.read(run.folder) as ledger:
        for session in range(run.n_sessions):
            rows = frame[frame["subject"].astype(str) == str(session)]
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
                name = context_name(environment.own, [observation[n] for n in environment.own])
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
            tables = [answer.reply.log_probabilities for answer in several]
            beliefs.append(_listed(item, tables, threshold))
        else:
            given = [answer.action for answer in several if answer.action is not None]
            counts = np.bincount(given, minlength=len(item.set_up.outcomes))
            beliefs.append(_counted(item, counts, len(several) - len(given), threshold))
        items.append(item)
    joined = RevealedBeliefs.join(*beliefs)
    nothing = np.full(len(joined.outcome), np.nan)
    return Readings(items, joined, nothing, nothing)


def _exact(
    item: ChanceItem, told: OutcomeProbabilities, question: RevealQuestion
) -> RevealedBeliefs:
    return RevealedBeliefs.exact(told, set_ups=[item.set_up], threshold=question.threshold)


def _listed(
    item: ChanceItem,
    tables: Sequence[Sequence[TokenLogProbability] | None],
    threshold: float,
) -> RevealedBeliefs:
    """Read the tables of all replies to one item.

    A reply that ends behind an outcome is that outcome: nothing longer was meant. No table tells
    how probable that end was; without this a full stop behind 7 leaves open 7.5.
    """
    return RevealedBeliefs.top_k(
        [tables],
        item.set_up.outcomes,
        extends=extends,
        nothing_longer=True,
        set_ups=[item.set_up],
        threshold=threshold,
    )


def _counted(item: ChanceItem, counts: Any, unread: int, threshold: float) -> RevealedBeliefs:
    """Read the counts of all answers to one item."""
    return RevealedBeliefs.sampled(
        [counts.tolist()],
        [unread],
        item.set_up.outcomes,
        set_ups=[item.set_up],
        threshold=threshold,
    )
