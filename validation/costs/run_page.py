"""The page of a run: what became of every answer, what it cost, and what was said."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from knownminds.environments import ANSWERED, Environment, Outcome, unread_rate
from knownminds.inference import MEASURES, Analysis, StoppingRule
from knownminds.llm_adapters.runs.run_result import ASSUMED_ANSWER, COUNTED, Run
from knownminds.llm_adapters.runs.runner import TRIALS, environment_of_run, read_run
from knownminds.validation.engine.arguments import settings_but_size
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.plots import few_digits
from knownminds.validation.engine.result import Result, Text
from knownminds.validation.engine.scores import Interval
from knownminds.validation.engine.verdicts import Verdict
from knownminds.validation.pages import figures as draw

from .questions import AskRun
from .several_runs import Runs
from .transcripts import LETTERS, transcripts

EXAMPLES = 12  # rows of the table of repairs and reasons
FEW, SOME = 0.05, 0.2  # shares of trials without a readable answer
COLOURS = {
    Outcome.OK: draw.BLUE,
    Outcome.REPAIRED: "#56B4E9",
    Outcome.MALFORMED: draw.ORANGE,
    Outcome.REFUSED: "#CC79A7",
    Outcome.EMPTY: "#E69F00",
    Outcome.TRUNCATED: "#F0E442",
    Outcome.ERROR: "#222222",
}
STATES = {
    "ok": "answered",
    "error_unpaid": "failed, surely not paid",
    "error_maybe_paid": "failed, may have been paid",
    "refused": "refused by moderation, not paid",
    "anew": "refused for the seed and sent anew without it, not paid",
    "unknown": "under way when the process died, may have been paid",
    "inflight": "under way, or was when its process died",
}
# What a server may do that caps and counts cannot foresee.
UNFORESEEN = (
    "answers_beyond_what_was_foreseen", "answers_without_tokens", "impossible_counts",
    "cut_prompts",
)  # fmt: skip
NOTES = (
    "Rates with 95% intervals of Wilson, which take the trials as independent. A trial without a "
    "readable answer has no action and no reward; nothing is filled in. Estimates leave it "
    "out, which is right if what is missing does not depend on what would have been said.",
    "Asked again in a session: trials whose question was put again after a failure or a malformed "
    "answer; one that was under way when its process died does not count. Tokens of a session are "
    "those of the answers that stand, dollars those of all its answers.",
    "Between the dollars paid and those at most lies what calls can have cost that have no answer, "
    f"or an answer without its number of tokens. Where nothing bounded an answer (--max-tokens), "
    f"one of {ASSUMED_ANSWER:,} tokens is assumed for these calls; a longer one costs more. What "
    "was sent before a price was known is reckoned with it from the tokens that were kept.",
)


def read_page(folder: str | os.PathLike[str]) -> Result:
    """Return the page of the run in a folder."""
    return say(read_run(folder))


@dataclass(frozen=True)
class Ran:
    """Runs of one question as a command prints them.

    Parameters
    ----------
    answered : The runs.
    pages : Those that are printed, without transcripts, and what controls show.
    """

    answered: Run | Runs
    pages: Sequence[Result]

    @property
    def exit_code(self) -> int:
        """That of the runs."""
        return self.answered.exit_code

    def to_dict(self) -> Any:
        """Return what the runs hold."""
        return self.answered.to_dict()

    def screen(self, where: str) -> str:
        """Return what answers of each page, and `where` the rest is."""
        return "\n".join(page.screen(where) for page in self.pages)

    def text(self) -> str:
        """Return all that each page says."""
        return "\n".join(page.text() for page in self.pages)


def leave(question: AskRun, answered: Run | Runs | Text) -> Ran | Text:
    """Leave the page of each run in its folder, and return what a command prints."""
    if isinstance(answered, Text):
        return answered
    runs = answered.runs if isinstance(answered, Runs) else {"": answered}
    judged = answered.judged if isinstance(answered, Runs) else None
    pages = []
    for name, run in runs.items():
        page = say(run)
        question.say(f"report: {page.save(run.folder)}")
        if run.trials is not None:
            question.say(f"trials: {run.folder / TRIALS}")
        if judged is None or name == "none":  # what controls show is one table
            pages.append(page.about(parts=()))
        for sentence in filter(None, (run.nothing_read, run.remedy, run.unanswered)):
            question.say(sentence)
    return Ran(answered, [*pages, *([] if judged is None else [judged])])


def say(run: Run) -> Result:
    """Return the verdicts, tables, figures and transcripts of a run."""
    environment = environment_of_run(run.configuration)
    frame = pd.DataFrame() if run.trials is None else run.trials.frame
    return Result(
        f"{few_digits(run.llm)} in {run.environment}",
        verdicts=_verdicts(run),
        tables={
            "Outcomes of the answers": _outcomes(run),
            "Requests": _counted(
                {STATES[state]: n for state, n in sorted(run.account.calls.items())}
                | {f"batches {state}": n for state, n in run.account.batches.items()}
                | {COUNTED["re_asked"]: run.account.re_asked}
            ),
            "Tokens and dollars": _usage(run),
            "Starts": _starts(run),
            "Looks of the stopping rule": pd.DataFrame(map(dict, run.looks)),
            "Unfinished sessions": pd.DataFrame(map(dict, run.unfinished)),
            "Repairs and reasons": _notes(frame),
            "Sessions": _sessions(frame, run.price is not None),
        },
        counts={
            "answers": {rate.outcome: rate.count for rate in run.outcomes},
            "sessions": {"complete": run.ended, "unfinished": len(run.unfinished)},
        },
        figures=_figures(frame),
        parts=transcripts(run),
        warnings=[
            *_reasons(run, frame),
            *(f"{n:,} {COUNTED[name]}" for name in UNFORESEEN if (n := getattr(run.account, name))),
        ],
        notes=NOTES,
        attempted=run.n_sessions,
        rows=frame,
        options=_asked(run, environment),
        command=run.starts[-1].command,
        versions=run.starts[-1].versions,
    )


def _reasons(run: Run, frame: pd.DataFrame) -> list[str]:
    """Return the most frequent reasons why sessions stopped and why answers were not read."""
    unread = frame[~frame["outcome"].isin(ANSWERED)] if len(frame) else frame
    notes = Counter(unread["note"].dropna() if "note" in unread else ())
    found = (("stopped", Counter(run.reasons)), ("not read", notes))
    return [f"{n:,} {what}: {why}" for what, each in found for why, n in each.most_common(1)]


def _asked(run: Run, environment: Environment) -> dict[str, Any]:
    kept = run.configuration
    options = {
        "experiment": run.environment,
        "settings": settings_but_size(environment),
        "language model": run.llm,
        "address": run.base_url or "none",
        "served as": run.model_served or "not said",
        "sampling": kept["sampling"] or "the provider's",
        "sessions": run.n_sessions,
        "trials of a session": environment.n_trials,
        "asked again if malformed": kept["re_ask"],
        "price": "not known" if run.price is None else str(run.price),
        "seed": kept["seed"],
    }
    model = f"{kept['provider']}:{kept['model']}"
    if run.llm.partition("?")[0] != model:
        options["model behind the name"] = model
    if run.left_out:
        options["sampling seed"] = f"sent no more, for it was refused: {run.left_out}"
    if "chosen" in kept:
        by = kept["chosen"].get("model", "their order")
        options["questions of a session"] = f"{kept['chosen']['questions']}, chosen by {by}"
    if "stop" in kept:
        rule = StoppingRule.of(kept["stop"])
        options["stopping rule"] = str(Analysis.of(MEASURES[rule.measure], 1, stop=rule))
    return options


def _verdicts(run: Run) -> dict[str, Verdict]:
    ended = f"{run.ended:,} of {run.n_sessions:,} came to their end"
    why = [f"{n:,} unfinished: {reason.rstrip('.')}" for reason, n in run.reasons.items()]
    if run.silent:
        why.append(f"{run.silent:,} came to their end without a readable answer")
    word = "complete" if run.complete and not run.silent else "not complete"
    verdicts = {"sessions": Verdict(word, (ended, *why))}
    lost = unread_rate(run.outcomes)
    if lost.of:
        word = "readable" if lost.share < FEW else "partly" if lost.share < SOME else "hardly"
        sentence = f"{lost.count:,} of {lost.of:,} trials have no readable answer"
        word += "" if lost.share < FEW else " readable"
        verdicts["answers"] = Verdict(word, (f"{sentence}: {lost}",))
    return verdicts


def _outcomes(run: Run) -> pd.DataFrame:
    rows = [
        {
            "outcome": rate.outcome,
            "trials": rate.count,
            "share": Interval(rate.share, rate.low, rate.high),
        }
        for rate in sorted(run.outcomes, key=lambda rate: rate.count == 0)
        if rate.of
    ]
    return pd.DataFrame(rows, columns=["outcome", "trials", "share"]).set_index("outcome")


def _counted(numbers: dict[str, Any]) -> pd.DataFrame:
    """Return a table of named numbers, without those that are 0."""
    kept = {name: n for name, n in numbers.items() if n}
    return pd.DataFrame({"number": pd.Series(kept, dtype=object)}).rename_axis("of")


def _usage(run: Run) -> pd.DataFrame:
    counts = {words: getattr(run.account, name) for name, words in COUNTED.items()}
    table = _counted({words: n for words, n in counts.items() if words != COUNTED["re_asked"]})
    if run.price is not None:
        table.loc["dollars paid for answers"] = f"{run.dollars_paid:f}"
        table.loc["dollars at most in all"] = f"{run.dollars:f}"
    return table


def _starts(run: Run) -> pd.DataFrame:
    """Return how far each start might go, and why it ended."""
    rows = [
        {
            "start": number,
            "caps": ", ".join(f"{name}={most}" for name, most in start.caps.items()) or "none",
            "ended by": start.reason or ("its end" if start.ended else "the death of its process"),
        }
        for number, start in enumerate(run.starts, start=1)
    ]
    return pd.DataFrame(rows).set_index("start")


def _notes(frame: pd.DataFrame) -> pd.DataFrame:
    """Count which repairs were made and why answers could not be read, with an example each."""
    if "note" not in frame:
        return pd.DataFrame()
    noted = frame[frame["note"].notna() & (frame["note"].astype(str) != "")]
    groups = sorted(noted.groupby(["outcome", "note"]), key=lambda group: -len(group[1]))
    rows = [
        {
            "outcome": outcome,
            "repair or reason": note,
            "trials": len(some),
            "for example": _example(some["raw_text"].dropna()),
        }
        for (outcome, note), some in groups[:EXAMPLES]
    ]
    if len(groups) > EXAMPLES:
        rest = sum(len(some) for _, some in groups[EXAMPLES:])
        rows.append({"outcome": "", "repair or reason": "others", "trials": rest})
    return pd.DataFrame(rows).fillna("")


def _example(texts: pd.Series) -> str:
    """Return the first answer, in one line."""
    return " ".join(str(texts.iloc[0]).split())[:LETTERS] if len(texts) else ""


def _sessions(frame: pd.DataFrame, priced: bool) -> pd.DataFrame:
    if not len(frame):
        return frame
    columns = frame.assign(
        unread=~frame["outcome"].isin(ANSWERED),
        asked_again=frame["attempt"] > 1,
        reward=frame["reward"].astype(float),
        tokens=frame[["input_tokens", "output_tokens"]].sum(axis=1),
        # There is no column of money as long as no answer has been paid for.
        dollars_for_answers=frame.get("money", 0.0),
    ).groupby("session", sort=False)
    sums = ["unread", "asked_again", "tokens", *(["dollars_for_answers"] if priced else [])]
    table = columns[sums].sum().assign(trials=columns.size(), mean_reward=columns["reward"].mean())
    return table.astype({"tokens": int}).rename_axis("session")


def _figures(frame: pd.DataFrame) -> dict[str, Drawing]:
    if not len(frame) or (frame["outcome"] == Outcome.OK.value).all():
        return {}
    shares = pd.crosstab(frame["trial"].astype(int) + 1, frame["outcome"], normalize="index")
    caption = "What became of the answers, trial by trial."
    return {caption: Drawing(shares.reset_index(), draw_outcomes)}


def draw_outcomes(shares: pd.DataFrame) -> Figure:
    """Draw the share of each outcome over the trials of a session."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(7.2, 2.9)
    trial = shares["trial"].to_numpy()
    below = np.zeros(len(trial))
    for outcome, colour in COLOURS.items():
        if outcome.value in shares:
            share = shares[outcome.value].to_numpy()
            pale = 0.25 if outcome is Outcome.OK else 1.0  # what went wrong is what one looks for
            look: dict[str, Any] = {"color": colour, "alpha": pale, "linewidth": 0}
            axis.bar(trial, share, 1.0, below, label=outcome.value, **look)
            below = below + share
    axis.set(xlabel="trial", ylabel="share of sessions", ylim=(0, 1), xlim=(0.5, trial[-1] + 0.5))
    draw.key(figure, axis)
    return figure
