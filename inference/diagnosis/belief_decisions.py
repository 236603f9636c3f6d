"""Stated beliefs beside decisions: one row per context and repetition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Diagnosis, Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import separated_by, with_columns
from knownminds.inference.resampling import times_drawn

ELICITATIONS = ("plain", "squared", "absolute", "bayesian")
BELIEF, DECISION, PART, GIVEN, SHARE = range(5)  # what a trial asks for
# These columns hold the answers about P(z in B_j | x): all parts in one distribution, as published,
# or each part in a question of its own.
PART_COLUMNS = {"distribution": "share", "separate": "part"}
ACTIONS = ("Yes", "Defer", "No")
NEEDED = ("context", "repetition", "question", "elicitation", "part", "posterior", "state")
UNIT = ("participant", "subject", "session", "context")
ROW = (*UNIT, "repetition")
CODES = {
    "question": ("belief", "decision", "part", "given the part", "share of a distribution"),
    "state": ("absent", "present"),
}

Integers = NDArray[np.int64]
Names = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class BeliefDecisions:
    """The statements and decisions about each context in each repetition.

    Parameters
    ----------
    frame : One row per context and repetition: participant, subject, session, context, repetition,
        state (0 or 1), posterior (exact probability of state 1), action (0 Yes, 1 Defer, 2 No), and
        the belief under each elicitation (`ELICITATIONS`). For the parts j of the law of iterated
        expectation there are given_j = P(state 1 | x, z in B_j), and P(z in B_j | x), as share_j if
        it was elicited in one distribution and as part_j if it had a question of its own; the exact
        values are exact_given_j, exact_share_j and exact_part_j. NaN where no answer could be read
        or nothing was asked. Further columns of the trials that are constant within a context are
        kept.
    counts : One row per participant and kind of question (the column of `frame` that holds its
        answers): participant, question, asked, missing.
    """

    frame: pd.DataFrame
    counts: pd.DataFrame

    @classmethod
    def read(cls, trials: Trials | pd.DataFrame, by: str | None = None) -> BeliefDecisions:
        """Arrange the trials of `diagnosis` by context and repetition.

        Parameters
        ----------
        trials : Trials with the columns context, repetition, question, elicitation, part, posterior
            and state, besides action and response.
        by : The column whose values are participants; None if all trials are of one.

        Raises
        ------
        ValueError : If a column is missing, a question came twice in a repetition, an answer is not
            a probability or an action, or a context has two states. The error names the trial.
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
        _check_answers(frame, question, answer, names)
        rows = frame[list(ROW)].drop_duplicates().reset_index(drop=True)
        index = pd.MultiIndex.from_frame(rows)
        position = index.get_indexer(pd.MultiIndex.from_frame(frame[list(ROW)]))
        exact = frame["posterior"].to_numpy(dtype=float, na_value=np.nan)
        columns: dict[str, Array] = {"state": _state(frame, position, len(rows))}
        columns["posterior"] = np.full(len(rows), np.nan)
        about = (question == BELIEF) | (question == DECISION)
        columns["posterior"][position[about]] = exact[about]
        parts = sorted({int(j) for j in frame["part"][question >= PART]})
        kinds = [kind for code, kind in ((SHARE, "share"), (PART, "part"), (GIVEN, "given"))
                 if (question == code).any()]  # fmt: skip
        wanted = ["action", *ELICITATIONS]
        wanted += [f"{kind}_{j}" for j in parts for kind in kinds]
        for name in wanted:
            mine = names == name
            columns[name] = np.full(len(rows), np.nan)
            columns[name][position[mine]] = answer[mine]
            if name[-1].isdigit():
                columns[f"exact_{name}"] = np.full(len(rows), np.nan)
                columns[f"exact_{name}"][position[mine]] = exact[mine]
        return cls(
            frame=pd.concat([rows, pd.DataFrame(columns), _constant(frame, rows)], axis=1),
            counts=_counts(frame["participant"], names, np.isnan(answer), wanted),
        )

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def participants(self) -> tuple[str, ...]:
        """Names of the participants, in order of appearance."""
        return tuple(self.frame["participant"].unique())

    def total(self, column: str) -> dict[str, int]:
        """Return how often each kind of question was "asked", or its answer is "missing"."""
        totals = self.counts.groupby("question", sort=False)[column].sum()
        return {str(question): int(n) for question, n in totals.items()}

    @cached_property
    def context(self) -> Integers:
        """Number of each row's context, [n]; the same in all its repetitions, and only there."""
        number = self.frame.groupby(list(UNIT), sort=False).ngroup()
        return np.asarray(number, dtype=np.int64)

    @property
    def part_elicitations(self) -> tuple[str, ...]:
        """The ways in which P(z in B_j | x) was asked for, in the order of `PART_COLUMNS`."""
        answered = self.frame.columns[self.frame.notna().any()]
        elicitations = {
            str(name).rpartition("_")[0] for name in (*self.counts["question"], *answered)
        }
        return tuple(how for how, column in PART_COLUMNS.items() if column in elicitations)

    @property
    def parts(self) -> tuple[int, ...]:
        """The parts j of the law of iterated expectation in the trials; () if there are none."""
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
        """Return the same with the evidence on each node: columns told_NODE, -1 without evidence.

        Nodes without evidence in any row have no column.

        Raises
        ------
        ValueError : If the trials do not say which evidence their contexts have, or the experiment
            has fewer contexts.
        """
        if "evidence" not in self.frame or self.frame["evidence"].isna().any():
            raise ValueError(
                "Evidence is known by the column 'evidence', the number of a context of the "
                "network; it is missing. Name columns of yours as features instead."
            )
        code = self.frame["evidence"].to_numpy(dtype=np.int64)
        known = environment.contexts.evidence
        if code.min() < 0 or code.max() >= len(known):
            raise ValueError(
                f"The network {environment.network} has the contexts 0 to {len(known) - 1}; the "
                f"trials have {code.min()} to {code.max()}. Give the experiment that was played."
            )
        shown = known[code]
        columns = {
            f"told_{name}": shown[:, i]
            for i, name in enumerate(environment.belief_network.names)
            if (shown[:, i] >= 0).any()
        }
        kept = self.frame.drop(columns=self.evidence)
        return BeliefDecisions(pd.concat([kept, pd.DataFrame(columns)], axis=1), self.counts)

    @property
    def evidence(self) -> list[str]:
        """The columns of evidence on nodes, for `features` of the tests."""
        return [str(name) for name in self.frame if str(name).startswith("told_")]

    def complete(self, *names: str) -> tuple[BeliefDecisions, dict[str, int]]:
        """Return the rows that have all these columns, and how many rows lack which column.

        Raises
        ------
        ValueError : If a column is absent from the trials, or no row has all columns.
        """
        unknown = [name for name in names if name not in self.frame]
        if unknown:
            raise ValueError(
                f"This test reads the columns {', '.join(names)}; {unknown[0]!r} did not come. "
                f"There are {', '.join(self.total('asked'))}."
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

    def resampled(self, rounds: int, seed: int) -> Integers:
        """Return how often each row counts when contexts are drawn with replacement, [B, n]."""
        context = self.context
        return times_drawn(int(context.max()) + 1, rounds, seed, 30)[:, context]

    def numbers(self, name: str) -> Array:
        """Return a column, [n]; NaN throughout if the trials do not have it."""
        if name not in self.frame:
            return np.full(len(self.frame), np.nan)
        return self.frame[name].to_numpy(dtype=float)

    def of_parts(self, stem: str) -> Array:
        """Return the columns of a stem, such as "given", by part, [n, J]."""
        return self.frame[[f"{stem}_{j}" for j in self.parts]].to_numpy(dtype=float)


def _checked(frame: pd.DataFrame, by: str | None) -> pd.DataFrame:
    """Add columns that may be left out; raise ValueError for missing columns and wrong values."""
    full = with_columns(frame, "Coherence", NEEDED).assign(
        participant=separated_by(frame, by),
        subject=frame.get("subject", ""),
        session=frame.get("session", "0"),
        action=frame.get("action", np.nan),
        response=frame.get("response", np.nan),
    )
    question = full["question"].to_numpy(dtype=float, na_value=np.nan)
    everywhere = np.ones(len(full), dtype=bool)
    for name, codes, rows in (
        ("question", CODES["question"], everywhere),
        ("elicitation", ELICITATIONS, question == BELIEF),
        ("state", CODES["state"], everywhere),
    ):
        values = full[name].to_numpy(dtype=float, na_value=np.nan)
        strange = rows & ~np.isin(values, np.arange(len(codes)))
        rule = f"The column {name!r} holds {_listed(codes)}; {{}} has {{}}."
        _refuse(full, strange, rule, full[name])
    part = full["part"].to_numpy(dtype=float, na_value=np.nan)
    rule = "Questions about a part name it, from 0; {} has {}."
    _refuse(full, (question >= PART) & (part < 0), rule, full["part"])
    return full


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"{i} {name}" for i, name in enumerate(names))


def _refuse(frame: pd.DataFrame, strange: NDArray[np.bool_], rule: str, values: Any) -> None:
    """Raise ValueError with the rule, the first strange row and its value, if there is one."""
    if not strange.any():
        return
    row = int(np.argmax(strange))
    at = frame.iloc[row]
    trial = f", trial {at['trial']}" if "trial" in frame else ""
    where = f"context {at['context']}, repetition {at['repetition']}{trial}"
    raise ValueError(rule.format(where, np.asarray(values)[row]))


def _check_answers(frame: pd.DataFrame, question: Integers, answer: Array, names: Names) -> None:
    """Refuse invalid answers, and questions that came twice."""
    decision = np.isfinite(answer) & (question == DECISION)
    strange = decision & ~np.isin(answer, np.arange(len(ACTIONS)))
    _refuse(frame, strange, f"Actions are {_listed(ACTIONS)}; {{}} has {{:g}}.", answer)
    strange = (question != DECISION) & ((answer < 0) | (answer > 1))
    rule = "Stated beliefs are probabilities from 0 to 1; {} has {:g}. Divide percentages by 100."
    _refuse(frame, strange, rule, answer)
    twice = frame.assign(question=names).duplicated([*ROW, "question"]).to_numpy()
    rule = (
        "A question comes once in a context and repetition; {} asks for {} again. Give "
        "repetitions their numbers."
    )
    _refuse(frame, twice, rule, names)


def _names(frame: pd.DataFrame, question: Integers) -> Names:
    """Return the column to which each trial's answer belongs."""
    elicitation, part = (
        frame[name].to_numpy(dtype=float, na_value=-1.0).astype(np.int64)
        for name in ("elicitation", "part")
    )
    stems = np.array(["", "action", "part_", "given_", "share_"], dtype=object)
    names: Names = stems[question]
    of_belief, of_part = question == BELIEF, question >= PART
    names[of_belief] = np.array(ELICITATIONS, dtype=object)[elicitation[of_belief]]
    names[of_part] = names[of_part] + part[of_part].astype(str).astype(object)
    return names


def _counts(
    participant: pd.Series[Any], names: Names, gap: NDArray[np.bool_], order: list[str]
) -> pd.DataFrame:
    """Count questions and missing answers by participant and kind of question."""
    person = pd.Categorical(participant, participant.unique())
    kind = pd.Categorical(names, order)
    table = pd.DataFrame({"participant": person, "question": kind, "missing": gap})
    groups = table.groupby(["participant", "question"], observed=True)["missing"]
    counts = groups.agg(asked="size", missing="sum").reset_index()
    return counts.astype({"participant": object, "question": object})


def _state(frame: pd.DataFrame, position: Integers, n: int) -> Array:
    """Return the state of each row; it must be the same throughout a context."""
    state = frame["state"].to_numpy(dtype=float)
    first = frame.groupby(list(UNIT), sort=False)["state"].transform("first").to_numpy(dtype=float)
    rule = "The state is drawn once per context; {} has {:g}, an earlier trial of the same context "
    rule += "another one. Give contexts their numbers."
    _refuse(frame, state != first, rule, state)
    values = np.empty(n)
    values[position] = state
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
