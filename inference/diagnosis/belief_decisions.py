"""Stated beliefs beside decisions: one row per context and repetition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Diagnosis, Trials, session_stream
from knownminds.environments.later import pandas as pd

ELICITATIONS = ("plain", "squared", "absolute", "bayesian")
BELIEF, DECISION, PART, GIVEN, SHARE = range(5)  # what a trial asks
# How P(z in B_j | x) was asked for, and the columns of the answers: all in one distribution, as
# published, or each part in a question of its own.
PART_COLUMNS = {"distribution": "share", "separate": "part"}
ACTIONS = ("Yes", "Defer", "No")
NEEDED = ("context", "repetition", "question", "elicitation", "part", "posterior", "state")
UNIT = ("participant", "subject", "session", "context")
ROW = (*UNIT, "repetition")


@dataclass(frozen=True, eq=False)
class BeliefDecisions:
    """What was stated and decided about each context in each repetition.

    Parameters
    ----------
    frame
        One row per context and repetition: participant, subject, session, context, repetition,
        state (0 or 1), posterior (exact probability of state 1), action (0 Yes, 1 Defer, 2 No),
        the belief under each elicitation (`ELICITATIONS`), and for the parts j of the law of
        iterated expectation given_j = P(state 1 | x, z in B_j), and P(z in B_j | x) as share_j
        where it was asked for in one distribution and as part_j where in a question of its own,
        with the exact values exact_given_j, exact_share_j and exact_part_j. NaN where nothing
        readable was said or nothing was asked. Further columns of the trials that are constant
        within a context are kept.
    counts
        One row per participant and kind of question (the column of `frame` that holds its
        answers): participant, question, asked, missing.
    """

    frame: pd.DataFrame
    counts: pd.DataFrame

    @classmethod
    def read(cls, trials: Trials | pd.DataFrame, by: str | None = None) -> BeliefDecisions:
        """Lay the trials of `diagnosis` out by context and repetition.

        Parameters
        ----------
        trials
            With the columns context, repetition, question, elicitation, part, posterior and state
            besides action and response.
        by
            The column whose values are participants; None if all trials are of one.

        Raises
        ------
        ValueError
            If a column is missing, a question was asked twice in a repetition, an answer is no
            probability or no action, or a context has two states; naming the trial.
        """
        frame = trials.frame if isinstance(trials, Trials) else trials
        frame = _checked(frame.reset_index(drop=True), by)
        question = frame["question"].to_numpy(dtype=np.int64)
        names = _names(frame, question)
        answer = np.where(
            question == DECISION,
            frame["action"].to_numpy(dtype=float, na_value=np.nan),
            frame["response"].to_numpy(dtype=float, na_value=np.nan),
        )
        _check_answers(frame, question, answer)
        _check_once(frame, names)
        rows = frame[list(ROW)].drop_duplicates().reset_index(drop=True)
        place = pd.MultiIndex.from_frame(rows).get_indexer(
            pd.MultiIndex.from_frame(frame[list(ROW)])
        )
        exact = frame["posterior"].to_numpy(dtype=float, na_value=np.nan)
        columns: dict[str, Array] = {"state": _state(frame, place, len(rows))}
        columns["posterior"] = np.full(len(rows), np.nan)
        about = (question == BELIEF) | (question == DECISION)
        columns["posterior"][place[about]] = exact[about]
        parts = sorted({int(j) for j in frame["part"][question >= PART]})
        kinds = [kind for code, kind in ((SHARE, "share"), (PART, "part"), (GIVEN, "given"))
                 if (question == code).any()]  # fmt: skip
        wanted = ["action", *ELICITATIONS]
        wanted += [f"{kind}_{j}" for j in parts for kind in kinds]
        for name in wanted:
            mine = names == name
            columns[name] = np.full(len(rows), np.nan)
            columns[name][place[mine]] = answer[mine]
            if name[-1].isdigit():
                columns[f"exact_{name}"] = np.full(len(rows), np.nan)
                columns[f"exact_{name}"][place[mine]] = exact[mine]
        return cls(
            frame=pd.concat([rows, pd.DataFrame(columns), _constant(frame, rows)], axis=1),
            counts=_counts(frame["participant"], names, np.isnan(answer), wanted),
        )

    def __len__(self) -> int:
        """Count contexts times repetitions."""
        return len(self.frame)

    @property
    def participants(self) -> tuple[str, ...]:
        """Their names, in order of appearance."""
        return tuple(self.frame["participant"].unique())

    @property
    def asked(self) -> dict[str, int]:
        """How often each kind of question was asked."""
        return self._total("asked")

    @property
    def missing(self) -> dict[str, int]:
        """How often each kind of question has no readable answer."""
        return self._total("missing")

    def _total(self, name: str) -> dict[str, int]:
        totals = self.counts.groupby("question", sort=False)[name].sum()
        return {str(question): int(n) for question, n in totals.items()}

    @cached_property
    def context(self) -> NDArray[np.int64]:
        """Number of each row's context, [n]; the same in all its repetitions, and only there."""
        number = self.frame.groupby(list(UNIT), sort=False).ngroup()
        return np.asarray(number, dtype=np.int64)

    @property
    def part_elicitations(self) -> tuple[str, ...]:
        """In which ways P(z in B_j | x) was asked for, of `PART_COLUMNS`; in that order."""
        answered = self.frame.columns[self.frame.notna().any()]
        asked = {str(name).rpartition("_")[0] for name in (*self.counts["question"], *answered)}
        return tuple(how for how, column in PART_COLUMNS.items() if column in asked)

    @property
    def parts(self) -> tuple[int, ...]:
        """The parts j of the law of iterated expectation that were asked; () if none were."""
        if not self.part_elicitations:
            return ()
        column = PART_COLUMNS[self.part_elicitations[0]]
        names = [str(name) for name in self.frame if str(name).startswith("given_")]
        return tuple(int(name[6:]) for name in names if f"{column}_{name[6:]}" in self.frame)

    def each(self) -> Iterator[tuple[str, BeliefDecisions]]:
        """Yield each participant's name and rows."""
        for name, rows in self.frame.groupby("participant", sort=False):
            counts = self.counts[self.counts["participant"] == name]
            yield (
                str(name),
                BeliefDecisions(rows.reset_index(drop=True), counts.reset_index(drop=True)),
            )

    def with_evidence(self, environment: Diagnosis) -> BeliefDecisions:
        """Return the same with what was told of each node: columns told_NODE, -1 if nothing.

        Nodes of which nothing is told in any row have no column.

        Raises
        ------
        ValueError
            If the trials do not say which evidence their contexts have, or the experiment has
            fewer.
        """
        if "evidence" not in self.frame or self.frame["evidence"].isna().any():
            raise ValueError(
                "Evidence is known by the column 'evidence', the number of a context of the "
                "network; it is missing. Name columns of your own as features instead."
            )
        code = self.frame["evidence"].to_numpy(dtype=np.int64)
        known = environment.contexts.evidence
        if code.min() < 0 or code.max() >= len(known):
            raise ValueError(
                f"The network {environment.network} has the contexts 0 to {len(known) - 1}; the "
                f"trials have {code.min()} to {code.max()}. Give the experiment that was played."
            )
        told = known[code]
        columns = {
            f"told_{name}": told[:, i]
            for i, name in enumerate(environment.belief_network.names)
            if (told[:, i] >= 0).any()
        }
        kept = self.frame.drop(columns=self.evidence)
        return BeliefDecisions(pd.concat([kept, pd.DataFrame(columns)], axis=1), self.counts)

    @property
    def evidence(self) -> list[str]:
        """The columns that tell of nodes, for `features` of the tests."""
        return [str(name) for name in self.frame if str(name).startswith("told_")]

    def complete(self, *names: str) -> tuple[BeliefDecisions, dict[str, int]]:
        """Return the rows that have all these columns, and how many lack which.

        Raises
        ------
        ValueError
            If a column was never asked for, or no row has all.
        """
        unknown = [name for name in names if name not in self.frame]
        if unknown:
            raise ValueError(
                f"This test reads the columns {', '.join(names)}; {unknown[0]!r} was not asked. "
                f"There are {', '.join(self.asked)}."
            )
        rows = np.ones(len(self.frame), dtype=np.bool_)
        excluded = {}
        for name in names:
            there = self.frame[name].notna().to_numpy()
            excluded[f"no {name}"] = int((rows & ~there).sum())
            rows &= there
        if not rows.any():
            raise ValueError(
                f"This test needs rows with {' and '.join(names)}; none of {len(self)} has them "
                f"({', '.join(f'{n} {why}' for why, n in excluded.items() if n)}). Ask for them "
                "in the same contexts and repetitions."
            )
        kept = self.frame if rows.all() else self.frame[rows].reset_index(drop=True)
        return BeliefDecisions(kept, self.counts), {why: n for why, n in excluded.items() if n}

    def resampled(self, rounds: int, seed: int) -> NDArray[np.int64]:
        """Return how often each row counts when contexts are drawn with replacement, [B, n]."""
        context = self.context
        return _drawn(int(context.max()) + 1, rounds, seed)[:, context]

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the table."""
        return self.frame.copy()

    def __str__(self) -> str:
        """Count contexts, rows and what is missing."""
        text = (
            f"{len(self)} rows of {int(self.context.max(initial=-1)) + 1} contexts, "
            f"{len(self.participants)} participants"
        )
        gaps = [
            f"{n} of {self.asked[name]} {name} missing" for name, n in self.missing.items() if n
        ]
        return "; ".join([text, *gaps])


def _checked(frame: pd.DataFrame, by: str | None) -> pd.DataFrame:
    """Add what may be left out; raise if a column is missing or holds what it cannot."""
    missing = [name for name in NEEDED if name not in frame]
    if missing:
        raise ValueError(
            f"Tests of coherence read the columns {', '.join(NEEDED)}; {missing[0]!r} is missing "
            f"among {', '.join(map(str, frame.columns))}. Map one with --columns "
            f"{missing[0]}=YOUR_NAME."
        )
    if by is not None and by not in frame:
        raise ValueError(
            f"Participants are told apart by a column; {by!r} is none of "
            f"{', '.join(map(str, frame.columns))}."
        )
    full = frame.assign(
        participant="" if by is None else frame[by].astype(str),
        subject=frame.get("subject", ""),
        session=frame.get("session", "0"),
        action=frame.get("action", np.nan),
        response=frame.get("response", np.nan),
    )
    text = "0 belief, 1 decision, 2 part, 3 given the part, 4 share of a distribution"
    _check_codes(full, "question", range(5), text)
    beliefs = full[(full["question"] == BELIEF).to_numpy()]
    text = ", ".join(f"{i} {name}" for i, name in enumerate(ELICITATIONS))
    _check_codes(beliefs, "elicitation", range(len(ELICITATIONS)), text)
    _check_codes(full, "state", range(2), "0 absent, 1 present")
    parts = full[(full["question"] >= PART).to_numpy()]
    negative = parts["part"].to_numpy(dtype=float) < 0
    if negative.any():
        raise ValueError(
            f"Questions about a part name it, from 0; {_place(parts, int(np.argmax(negative)))} "
            f"has {parts['part'].iloc[int(np.argmax(negative))]}."
        )
    return full


@lru_cache(maxsize=4)
def _drawn(n: int, rounds: int, seed: int) -> NDArray[np.int64]:
    """Return how often each of n contexts is drawn, [B, n]; the same for all who have as many."""
    drawn = session_stream(seed, 30).multinomial(n, np.full(n, 1 / n), size=rounds)
    drawn.flags.writeable = False
    return np.asarray(drawn, dtype=np.int64)


def _check_codes(frame: pd.DataFrame, column: str, codes: range, text: str) -> None:
    values = frame[column].to_numpy(dtype=float, na_value=np.nan)
    strange = ~np.isin(values, np.array(codes, dtype=float))
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"The column {column!r} holds {text}; {_place(frame, row)} has "
            f"{frame[column].iloc[row]}."
        )


def _check_answers(frame: pd.DataFrame, question: NDArray[np.int64], answer: Array) -> None:
    given = np.isfinite(answer)
    decided = question == DECISION
    strange = given & decided & ~np.isin(answer, np.arange(len(ACTIONS)))
    if strange.any():
        row = int(np.argmax(strange))
        text = ", ".join(f"{i} {name}" for i, name in enumerate(ACTIONS))
        raise ValueError(f"Actions are {text}; {_place(frame, row)} has {answer[row]:g}.")
    strange = given & ~decided & ((answer < 0) | (answer > 1))
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"Stated beliefs are probabilities from 0 to 1; {_place(frame, row)} has "
            f"{answer[row]:g}. Divide percentages by 100."
        )


def _check_once(frame: pd.DataFrame, names: NDArray[np.object_]) -> None:
    twice = frame.assign(asked=names).duplicated([*ROW, "asked"]).to_numpy()
    if twice.any():
        row = int(np.argmax(twice))
        raise ValueError(
            "A question is asked once in a context and repetition; "
            f"{_place(frame, row)} asks for {names[row]} again. Give repetitions their numbers."
        )


def _names(frame: pd.DataFrame, question: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return the column to which each trial's answer belongs."""
    elicitation = frame["elicitation"].to_numpy(dtype=float, na_value=-1.0).astype(np.int64)
    part = frame["part"].to_numpy(dtype=float, na_value=-1.0).astype(np.int64)
    stems = np.array(["", "action", "part_", "given_", "share_"], dtype=object)
    names: NDArray[np.object_] = stems[question]
    of_belief, of_part = question == BELIEF, question >= PART
    names[of_belief] = np.array(ELICITATIONS, dtype=object)[elicitation[of_belief]]
    names[of_part] = names[of_part] + part[of_part].astype(str).astype(object)
    return names


def _counts(
    participant: pd.Series[Any],
    names: NDArray[np.object_],
    gap: NDArray[np.bool_],
    order: list[str],
) -> pd.DataFrame:
    """Count by participant and kind of question what was asked and what is missing."""
    table = pd.DataFrame({"participant": participant, "question": names, "missing": gap})
    groups = table.groupby(["participant", "question"], sort=False)["missing"]
    found = groups.agg(asked="size", missing="sum").reset_index()
    place = {name: i for i, name in enumerate(order)}
    person = {name: i for i, name in enumerate(participant.unique())}
    by = found.assign(p=found["participant"].map(person), q=found["question"].map(place))
    return found.loc[by.sort_values(["p", "q"]).index].reset_index(drop=True)


def _state(frame: pd.DataFrame, numbers: NDArray[np.int64], n: int) -> Array:
    """Return the state of each row, which must be one per context."""
    state = frame["state"].to_numpy(dtype=float)
    first = frame.groupby(list(UNIT), sort=False)["state"].transform("first").to_numpy(dtype=float)
    differs = state != first
    if differs.any():
        row = int(np.argmax(differs))
        raise ValueError(
            "The state is drawn once per context; "
            f"{_place(frame, row)} says {state[row]:g}, an earlier trial of context "
            f"{frame['context'].iloc[row]} says {first[row]:g}. Give contexts their own numbers."
        )
    values = np.empty(n)
    values[numbers] = state
    return values


def _constant(frame: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return further columns that are constant within contexts, one row per row of `rows`."""
    known = {*NEEDED, *ROW, "action", "response", "reward", "trial", "block"}
    known |= {"outcome", "raw_text", "labels", "attempt", "prompt_hash", "money"}
    known |= {"input_tokens", "output_tokens", *ELICITATIONS}
    names = [str(name) for name in frame if str(name) not in known]
    groups = frame.groupby(list(UNIT), sort=False)
    constant = [name for name in names if (groups[name].nunique(dropna=False) <= 1).all()]
    if not constant:
        return pd.DataFrame(index=rows.index)
    first = frame.drop_duplicates(list(UNIT)).set_index(list(UNIT))[constant]
    return first.loc[pd.MultiIndex.from_frame(rows[list(UNIT)])].reset_index(drop=True)


def _place(frame: pd.DataFrame, row: int) -> str:
    at = frame.iloc[row]
    trial = f", trial {at['trial']}" if "trial" in frame else ""
    return f"context {at['context']}, repetition {at['repetition']}{trial}"
