"""Controls: experiments changed in one way, in which a player must behave in a known way.

An analysis of a player's parameters assumes three things: the player reads its instruction, its
choices follow the rewards, and names and wordings do not matter. Each control changes one of these
and nothing else, in the very sessions that the player took.

============  ==================================================================================
instruction   after each question a sentence names the answer to give
shuffled      what the options of a trial pay is exchanged at random, so that nothing can be learned
reversed      what the options pay is exchanged, so that the better one is the worse one
relabelled    the options have each other's names
paraphrase    the next wording that ships
repeat        nothing: it shows how far answers vary by themselves, for relabelled and paraphrase
============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from knownminds.members import unknown

from .conditions import shipped_words
from .design import Design
from .environment import Environment
from .turn import Observation, Turn
from .words.prompt import Message, Prompt, paraphrases_of
from .world import Payoffs, Points

CONTROLS = ("instruction", "shuffled", "reversed", "relabelled", "paraphrase")
REPEAT = "repeat"  # shows how far answers vary by themselves; VARYING are compared with it
VARYING = ("relabelled", "paraphrase")

if TYPE_CHECKING:
    _Base = Environment
else:
    _Base = object  # the controls below are mixed into the class of an experiment

_INSTRUCTION = "\n\nThe task above no longer counts. Whatever it asks, reply with exactly this:\n"
_SHARES = (0.25, 0.75)  # positions in the range of numbers: the answers to even and to odd trials


def controls_of(environment: Environment) -> dict[str, str]:
    """Return why an experiment cannot have a control, by control; "" if it can."""
    name, table = environment.name, _paid(environment)
    alone = environment.has_words() and environment.replies.n_prompts == environment.n_trials
    fixed = not table or environment.given not in ("action", "both")
    payoffs = f"what options of {name} pay is not drawn beforehand and learned from rewards alone"
    few = environment.settings.get("templates") is not None or not paraphrases_of(
        shipped_words(environment)
    )
    return {
        "instruction": "" if alone else f"{name} has no words, or one reply answers several trials",
        "shuffled": payoffs if fixed else "",
        "reversed": payoffs if fixed else "",
        "relabelled": "" if environment.labels(np.full(environment.n_draws, 0.5))
        else f"options of {name} have no names that change between sessions",
        "paraphrase": f"{name} has no further wording with these settings" if few else "",
    }  # fmt: skip


def check_controls(environment: Environment, names: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the controls of an experiment: those that are named, or all that it can have.

    The last one is "repeat" if others need it for comparison.

    Raises
    ------
    ValueError : If there is no such control, or the experiment cannot have it.
    """
    reasons = controls_of(environment)
    for name in names:
        if name not in CONTROLS:
            raise ValueError(unknown("control", name, CONTROLS))
        if reasons[name]:
            able = [other for other, reason in reasons.items() if not reason]
            raise ValueError(
                f"A control changes an experiment in one way; {reasons[name]}, so that {name} "
                f"is no control of it. It can have {', '.join(able)}."
            )
    wanted = tuple(name for name in CONTROLS if name in (names or CONTROLS) and not reasons[name])
    return (*wanted, REPEAT) if set(VARYING).intersection(wanted) else wanted


def controlled(environment: Environment, control: str) -> Environment:
    """Return an experiment changed by a control; its sessions have the same addresses.

    Raises
    ------
    ValueError : If there is no such control, or the experiment cannot have it.
    """
    if control == REPEAT:
        return environment
    check_controls(environment, (control,))
    if control == "paraphrase":
        wording = next(iter(paraphrases_of(shipped_words(environment))))
        return type(environment)(**{**environment.settings, "templates": wording})
    kind = type(environment)
    bases = (_CHANGES[control], kind)
    # The class keeps its module, since the experiment's words are found beside it.
    changed: Any = object.__new__(type(kind.__name__, bases, {"__module__": kind.__module__}))
    changed.__dict__.update(vars(environment))
    return cast(Environment, changed)


def payoffs_of(environment: Environment, design: Design) -> NDArray[np.float64]:
    """Return what each option would pay on each trial of a session, [n_trials, n_actions]."""
    return np.asarray(design.table[_paid(environment)], dtype=float)


def instructed(environment: Environment, trial: int) -> int | float | tuple[int, float]:
    """Return the answer that the control "instruction" names on a trial: each option in turn."""
    low, high = environment.response_range
    number = low + _SHARES[trial % 2] * (high - low)
    if environment.given == "response":
        return number
    action = trial % environment.n_actions
    return (action, number) if environment.given == "both" else action


def _paid(environment: Environment) -> str:
    """Return the name of the table of payoffs drawn beforehand; "" if there is none."""
    return {Payoffs: "payoffs", Points: "points"}.get(environment.world, "")


class _Instruction(_Base):
    """Adds to each question a sentence that names the answer to give."""

    changed_by = "instruction"

    def render(self, labels: Any, observation: Observation, turns: Any) -> Prompt:
        prompt = super().render(labels, observation, turns)
        last = prompt.messages[-1]
        answer = self.say(labels, instructed(self, int(observation["trial"])), observation)
        return Prompt(
            (*prompt.messages[:-1], replace(last, content=last.content + _INSTRUCTION + answer))
        )

    def read(self, design: Design, messages: Any) -> tuple[list[Turn], Observation]:
        try:
            return super().read(design, [_without_instruction(message) for message in messages])
        except ValueError:  # questions that stand alone compare whole prompts
            return super().read(design, messages)


class _Shuffled(_Base):
    """Exchanges the payoffs of a trial's options at random."""

    changed_by = "shuffled"

    def tables(self, uniforms: NDArray[np.float64]) -> Mapping[str, NDArray[Any]]:
        tables = super().tables(uniforms)  # type: ignore[safe-super]
        return _paying(self, tables, _permuted)


class _Reversed(_Base):
    """Exchanges the payoffs of the options: the first with the last, and so on."""

    changed_by = "reversed"

    def tables(self, uniforms: NDArray[np.float64]) -> Mapping[str, NDArray[Any]]:
        tables = super().tables(uniforms)  # type: ignore[safe-super]
        return _paying(self, tables, lambda paid: paid[:, ::-1])


class _Relabelled(_Base):
    """Gives the options each other's names."""

    changed_by = "relabelled"

    def labels(self, uniforms: NDArray[np.float64]) -> Any:
        return _exchanged(super().labels(uniforms))


_CHANGES = {kind.changed_by: kind for kind in (_Instruction, _Shuffled, _Reversed, _Relabelled)}


def _paying(
    environment: Environment,
    tables: Mapping[str, NDArray[Any]],
    exchange: Callable[[NDArray[Any]], NDArray[Any]],
) -> Mapping[str, NDArray[Any]]:
    """Return tables with the payoffs of each session exchanged, [n_trials, n_actions]."""
    name = _paid(environment)
    return {**tables, name: np.array([exchange(paid) for paid in tables[name]])}


def _permuted(paid: NDArray[Any]) -> NDArray[Any]:
    entropy = int.from_bytes(sha256(paid.astype(float).tobytes()).digest()[:8])
    return np.random.default_rng(entropy).permuted(paid, axis=1)


def _exchanged(labels: Any) -> Any:
    """Return labels with each innermost list in the opposite order."""
    if isinstance(labels, dict):
        return {name: _exchanged(value) for name, value in labels.items()}
    if any(isinstance(value, list | tuple) for value in labels):
        return [_exchanged(value) for value in labels]
    return labels[::-1]


def _without_instruction(message: Message) -> Message:
    return replace(message, content=message.content.partition(_INSTRUCTION)[0])
