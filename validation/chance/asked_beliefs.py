"""Contexts of a grid, and the ways of asking a participant for the probability of what follows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Observation, Prompt, session_stream, unknown
from knownminds.environments.chance.outcome_grid import (
    LETTERS,
    NONE,
    Asking,
    BrokenOff,
    Distractors,
    Form,
)
from knownminds.environments.chance.scenarios import SCENARIOS, complete_grid
from knownminds.inference.chance.revealed_belief import (
    RevealedBeliefs,
    SetUp,
    Source,
    context_name,
    set_ups_of,
)
from knownminds.llm_adapters import (
    Adapter,
    NotCapable,
    Reply,
    Sampling,
    TellsOutcomes,
    TokenLogProbability,
)
from knownminds.llm_adapters.outcomes.outcome_probabilities import OutcomeProbabilities
from knownminds.llm_adapters.outcomes.outcome_tree import extends
from knownminds.llm_adapters.providers.token_sampler import Tokenisation, TokenSampler
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.llm_adapters.runs.run_result import Run

NEGLIGIBLE = 1e-6  # probability that is not followed behind signs; float32 rounds more away
GRID = ("n_dice", "n_faces", "n_coins", "n_options")  # sizes of the grid
# In which form prompts reach a model.
SENT = {
    "text": "as plain text, without a chat template",
    "template": "through the model's chat template",
    "messages": "as messages, which the interface puts into a form of its own",
}
OWN = 31  # of the address of what a known mind says
Progress = Callable[[int, int], None]


class Asked(NamedTuple):
    """A context, or a question about it, as it is asked.

    Parameters
    ----------
    place : the experiment that it belongs to
    observation : what the experiment shows
    set_up : the outcomes that may come, or the letters
    prompt : as a participant gets it
    context : name of the context, also of a question
    outcome : position of the outcome that a question is about; -1 for none
    options : the probabilities that a question offers, [5]; none for a context
    correct : position of the right one; -1 for none
    """

    place: BrokenOff
    observation: Observation
    set_up: SetUp
    prompt: str | Prompt
    context: str
    outcome: int = NONE
    options: tuple[float, ...] = ()
    correct: int = NONE


@dataclass(frozen=True)
class Told:
    """What a participant has told: a table of beliefs, and the naive reading beside it.

    Parameters
    ----------
    beliefs : of the contexts, or of the letters of questions
    naive : probability of the tokens of each outcome alone, normalised, [rows]; NaN if unknown
    known : the belief of a mind whose belief is known, [rows]; NaN of others
    """

    beliefs: RevealedBeliefs
    naive: Array
    known: Array


def places_of(
    scenarios: Sequence[str],
    form: Form,
    distractors: Distractors = "published",
    even_faces: bool = False,
    only: Mapping[str, int] | None = None,
    asking: Asking = "whole",
) -> tuple[BrokenOff, ...]:
    """Return the experiments of the complete grid that belong to some scenarios.

    Parameters
    ----------
    only
        Sizes to stay with, such as n_dice; those that a scenario does not have leave it whole.
    """
    for name in scenarios:
        if name not in SCENARIOS:
            raise ValueError(unknown("scenario", name, SCENARIOS))
    found = complete_grid(form, distractors, even_faces, asking)
    held = only or {}
    for name in held:
        if name not in GRID:
            raise ValueError(unknown("size", name, GRID))
    chosen = tuple(
        place
        for place in found
        if place.name in scenarios
        and all(place.settings.get(name, value) == value for name, value in held.items())
    )
    if not chosen:
        told = ", ".join(f"{name}={value:g}" for name, value in held.items())
        raise ValueError(f"The grid of {', '.join(scenarios)} has nothing with {told}.")
    return chosen


def contexts_of(places: Iterable[BrokenOff], *, plain: bool) -> list[Asked]:
    """Return all contexts of some experiments.

    Parameters
    ----------
    plain
        Whether the text alone is the prompt, without any chat template around it.
    """
    found = []
    for place in places:
        for trial, (context, set_up) in enumerate(
            zip(place.contexts, set_ups_of(place), strict=True)
        ):
            values = dict(zip(place.own, context.values, strict=True))
            cell = int(place.cells(np.array([context.values]))[0])
            none = {"asked": NONE, "correct": NONE, "arrangement": NONE}
            observation = {"trial": trial, **values, "cell": cell, **none}
            prompt: str | Prompt = place.render(observation, [])
            if plain and isinstance(prompt, Prompt):
                prompt = prompt.messages[-1].content
            found.append(Asked(place, observation, set_up, prompt, set_up.name))
    return found


def questions_of(places: Iterable[BrokenOff], seed: int) -> list[Asked]:
    """Return one question about each context, as the first session with this seed has them."""
    found = []
    for place in places:
        rng = session_stream(seed, *RUN, 0)
        observation: Observation | None = place.reset(options={"design": place.draw(rng)})[0]
        while observation is not None:
            found.append(_question(place, observation))
            observation = place.step(0)[0]
    return found


def _question(place: BrokenOff, observation: Observation) -> Asked:
    name = context_name(place.own, [observation[n] for n in place.own])
    correct, asked = int(observation["correct"]), int(observation["asked"])
    set_up = SetUp(
        name=f"{name}, outcome {asked}, letter {LETTERS[correct]}",
        outcomes=LETTERS,
        truth=place.truth(observation),
        scenario=place.name,
    )
    return Asked(
        place,
        observation,
        set_up,
        place.render(observation, []),
        name,
        asked,
        tuple(map(float, place.options(observation))),
        correct,
    )


def source_of(adapter: Adapter, source: Source | None) -> Source:
    """Return how an adapter's beliefs can be read; the best way, if none is named.

    Raises
    ------
    NotCapable
        If it cannot do what is asked of it, or has no log-probabilities and nothing is asked.
    """
    exact = isinstance(adapter, TellsOutcomes)
    some = adapter.capabilities.answer_log_probabilities
    if source == "exact" and not exact:
        raise NotCapable(
            f"The exact probability of whole outcomes is known of local models; {adapter.model} "
            f"does not tell it. Use --source {'top-k' if some else 'sampled'}."
        )
    if source == "top-k" and not some:
        raise NotCapable(
            f"{adapter.model} tells no log-probabilities of its tokens. Use --source sampled, "
            "which counts its answers."
        )
    if source is not None:
        return source
    if not exact and not some:
        raise NotCapable(
            f"Beliefs are read from log-probabilities of tokens; {adapter.model} tells none. Say "
            "--source sampled to count its answers, with --draws for how many."
        )
    return "exact" if exact else "top-k"


def sent_as(adapter: Adapter, prompts: Sequence[str | Prompt]) -> str:
    """Say in which form a model gets prompts: one of `SENT`."""
    if not isinstance(adapter, TellsOutcomes):
        return "messages"
    return "template" if all(map(adapter.templated, prompts)) else "text"


def exact_beliefs(
    adapter: TellsOutcomes,
    asked: Sequence[Asked],
    *,
    threshold: float,
    signs: bool = True,
    progress: Progress | None = None,
) -> Told:
    """Ask a local model for the probability of each whole outcome, all contexts in one pass."""
    found = adapter.log_probabilities_of_each(
        [one.prompt for one in asked],
        [one.set_up.outcomes for one in asked],
        negligible=NEGLIGIBLE if signs else 0.0,
        signs=signs,
        progress=progress,
    )
    return _told(asked, found, threshold)


def _told(asked: Sequence[Asked], found: Sequence[OutcomeProbabilities], threshold: float) -> Told:
    parts = [
        RevealedBeliefs.exact(own, set_ups=[one.set_up], threshold=threshold)
        for one, own in zip(asked, found, strict=True)
    ]
    naive = np.concatenate([own.naive[0] for own in found])
    return Told(RevealedBeliefs.join(*parts), naive, np.full(len(naive), np.nan))


def known_beliefs(
    minds: Mapping[BrokenOff, Agent],
    asked: Sequence[Asked],
    *,
    source: Source,
    tokens: Tokenisation,
    space: float,
    leak: float,
    draws: int,
    top: int,
    threshold: float,
    seed: int,
    progress: Progress | None = None,
) -> Told:
    """Ask a mind whose beliefs are known, seen through a way of cutting what it says into tokens.

    Parameters
    ----------
    minds
        Who plays each experiment.
    space
        Share of its outcomes with a space before them.
    leak
        Share of what it says that is no outcome.
    draws
        How often it answers, for counts and top-k tables.
    top
        Alternatives that are told with each token.
    """
    found: list[OutcomeProbabilities] = []
    parts: list[RevealedBeliefs] = []
    naive, known = [], []
    for k, one in enumerate(asked):
        mind = minds[one.place]
        mind.reset()
        p = np.asarray(mind.probabilities(one.observation), dtype=float)
        outcomes = one.set_up.outcomes
        speaker = TokenSampler(outcomes, p / p.sum(), tokens, space=space, leak=leak)
        rng = session_stream(seed, OWN, k)
        found.append(speaker.outcome_probabilities())
        if source == "top-k":
            replies = [speaker.reply(rng, top=top).log_probabilities for _ in range(draws)]
            parts.append(_listed(replies, one, threshold))
        elif source == "sampled":
            counts, others = speaker.counts(rng, draws)
            parts.append(
                RevealedBeliefs.sampled(
                    [counts.tolist()], [others], outcomes, set_ups=[one.set_up], threshold=threshold
                )
            )
        naive.append(found[-1].naive[0])
        known.append(speaker.probabilities)
        if progress is not None:
            progress(k + 1, len(asked))
    if source == "exact":
        beliefs = _told(asked, found, threshold).beliefs
    else:
        beliefs = RevealedBeliefs.join(*parts)
    return Told(beliefs, np.concatenate(naive), np.concatenate(known))


def _listed(
    replies: Sequence[Sequence[TokenLogProbability] | None], asked: Asked, threshold: float
) -> RevealedBeliefs:
    """Read the tables of all replies to one context.

    A reply that ends behind an outcome is that outcome: nothing longer was meant. No table tells
    how probable that end was; without this a full stop behind 7 leaves open 7.5.
    """
    return RevealedBeliefs.top_k(
        [replies],
        asked.set_up.outcomes,
        extends=extends,
        nothing_longer=True,
        set_ups=[asked.set_up],
        threshold=threshold,
    )


class Lived(NamedTuple):
    """An answer of a run.

    Parameters
    ----------
    asked : what was asked
    action : the outcome, or the letter, that was read; None if none could be
    reply : what came
    """

    asked: Asked
    action: int | None
    reply: Reply


def lived_answers(run: Run, place: BrokenOff) -> Iterator[Lived]:
    """Yield the answers of a run; calls that failed brought none and are left out."""
    if run.trials is None:
        return
    frame = run.trials.frame
    known = (
        {one.context: one for one in contexts_of([place], plain=False)}
        if (place.form != "stated")
        else {}
    )
    with Ledger.read(run.folder) as ledger:
        for session in range(run.n_sessions):
            own = frame[frame["subject"].astype(str) == str(session)]
            calls = ledger.calls_of(session)
            last = {turn: call for (turn, _), call in calls.items() if call.reply is not None}
            fields = place.fields.shown
            design = place.draw(session_stream(_seed_of(run), *RUN, session))
            for row in own.to_dict("records"):
                trial = int(row["trial"])
                if trial not in last:
                    continue
                observation = {"trial": trial} | {
                    name: int(design.table[name][trial]) for name in fields
                }
                if int(row["cell"]) != observation["cell"]:
                    raise ValueError(
                        f"Session {session} of {run.folder} is none of {place!r} with the seed "
                        f"{_seed_of(run)}. Read runs with the settings they were made with."
                    )
                name = context_name(place.own, [observation[n] for n in place.own])
                one = known[name] if known else _question(place, observation)
                given = row["action"]
                action = None if given is None or not np.isfinite(given) or given < 0 else given
                reply = last[trial].reply
                assert reply is not None
                yield Lived(one, None if action is None else int(action), reply)


def _seed_of(run: Run) -> int:
    return int(run.configuration["seed"])


def beliefs_of_answers(
    answers: Iterable[Lived], *, source: Source, threshold: float
) -> tuple[RevealedBeliefs, list[Asked]]:
    """Put together what the answers to each context, or question, tell."""
    by_name: dict[str, list[Lived]] = {}
    for answer in answers:
        by_name.setdefault(answer.asked.set_up.name, []).append(answer)
    if not by_name:
        raise ValueError("Beliefs are read from answers; the run has none. Resume it.")
    parts, asked = [], []
    for several in by_name.values():
        one = several[0].asked
        outcomes = one.set_up.outcomes
        if source == "top-k":
            part = _listed([answer.reply.log_probabilities for answer in several], one, threshold)
        else:
            given = [answer.action for answer in several if answer.action is not None]
            counts = np.bincount(given, minlength=len(outcomes)).tolist()
            part = RevealedBeliefs.sampled(
                [counts],
                [len(several) - len(given)],
                outcomes,
                set_ups=[one.set_up],
                threshold=threshold,
            )
        parts.append(part)
        asked.append(one)
    return RevealedBeliefs.join(*parts), asked


def lived_beliefs(
    adapter: Adapter,
    places: Sequence[BrokenOff],
    *,
    source: Source,
    draws: int,
    top: int,
    threshold: float,
    seed: int,
    folder: str | os.PathLike[str],
    settings: Sampling | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> tuple[Told, list[Asked]]:
    """Let a language model answer in sessions with a ledger each, and read its beliefs.

    Parameters
    ----------
    draws
        Sessions of each experiment, in which each of its contexts is asked once.
    top
        Alternatives that are asked for with each token, of top-k tables.
    folder
        Where the ledgers are kept, one folder per experiment; the same call goes on there.
    how
        Further arguments of `run`, such as caps and the price.
    """
    from knownminds.validation.costs.connect import run

    settings = settings or Sampling()
    if source == "top-k":
        settings = replace(settings, top_log_probabilities=top)
    answers: list[Lived] = []
    for k, place in enumerate(places):
        lived = run(
            place,
            adapter,
            sessions=draws,
            seed=seed,
            out=Path(folder) / _folder_of(place),
            settings=settings,
            **how,
        )
        if lived.stopped:
            raise ValueError(
                f"{lived.stopped} What was paid for stays in {folder}; the same command goes on."
            )
        answers += lived_answers(lived, place)
        if progress is not None:
            progress(k + 1, len(places))
    beliefs, asked = beliefs_of_answers(answers, source=source, threshold=threshold)
    nothing = np.full(len(beliefs.outcome), np.nan)
    return Told(beliefs, nothing, nothing), asked


def _folder_of(place: BrokenOff) -> str:
    size = [place.settings[name] for name in GRID if name in place.settings]
    return "-".join([place.name, *map(str, size), place.form])
