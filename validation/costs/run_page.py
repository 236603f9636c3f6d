"""The page of a run: what became of every answer, what it cost, and what the gaps may hide."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.agents import Contaminants
from knownminds.environments import ANSWERED, Environment, Outcome, Rate, make, unread_rate
from knownminds.inference import StoppingRule
from knownminds.llm_adapters import Sampling
from knownminds.llm_adapters.runs.prices import GIVEN
from knownminds.llm_adapters.runs.run_result import ASSUMED_ANSWER, Run
from knownminds.validation.engine.arguments import settings_asked, settings_but_size
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    Finding,
    Page,
    Table,
    Turn,
    counted,
    listed,
    outcome_table,
    table,
)

from .transcripts import transcripts

EXAMPLES = 12  # rows of the table of notes
LETTERS = 60  # of an answer that is shown
LEFT_OUT = (
    "Estimates leave them out, which is right if what is missing does not depend on what would "
    "have been said."
)
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
    "unknown": "under way when the process died, may have been paid",
    "inflight": "under way, or was when its process died",
}


def run_page(run: Run) -> Page:
    """Return the page of a run."""
    environment = make(run.environment, **run.configuration["settings"])
    frame = pd.DataFrame() if run.trials is None else run.trials.frame
    about = settings_but_size(environment)
    turns, which = transcripts(run)
    return Page(
        title=f"{run.llm} in {run.environment}",
        asked=[
            ("experiment", run.environment),
            ("settings", listed(about)),
            ("language model", run.llm),
            ("address", run.base_url or "none"),
            ("served as", run.model_served or "not said"),
            ("sampling", listed(run.configuration["sampling"]) or "the provider's own"),
            ("sessions", f"{run.n_sessions} of {_length(environment)}"),
            ("asked again if malformed", str(run.configuration["re_ask"])),
            ("caps", listed(run.starts[-1].caps) or "none"),
            ("price", "not known" if run.price is None else str(run.price)),
            *_chosen(run),
            *([("batches", listed(run.account.batches))] if run.account.batches else []),
            ("starts", str(len(run.starts))),
            ("seed", str(run.configuration["seed"])),
        ],
        findings=_findings(run, turns),
        sentences=_sentences(run, frame),
        notes=[
            "Rates with 95% intervals of Wilson, which take the trials as independent. A trial "
            "without a readable answer has no action and no reward; nothing is put in its place.",
            "Asked again in a session: trials whose question was put again after a failure or a "
            "malformed answer; one that was under way when its process died does not count. Tokens "
            "of a session are those of the answers that stand, dollars those of all its answers.",
        ],
        tables=_tables(run, frame),
        figures=_figures(environment, frame) if len(frame) else [],
        command=run_command(run, environment),
        versions=run.starts[-1].versions,
        transcripts=turns,
        transcripts_told=which,
    )


def _chosen(run: Run) -> list[tuple[str, str]]:
    """Say how questions were chosen and what could stop the run, where that was asked."""
    told, kept = [], run.configuration
    if "chosen" in kept:
        by = kept["chosen"].get("model", "their order")
        told.append(("questions of a session", f"{kept['chosen']['questions']}, chosen by {by}"))
    if "stop" in kept:
        told.append(("stopping rule", str(StoppingRule.of(kept["stop"]))))
    return told


def _length(environment: Environment) -> str:
    told = counted(environment.n_trials, "trial")
    return f"at most {told}" if environment.ends_early or "present" in environment.drawn else told


def run_command(run: Run, environment: Environment) -> str:
    """Return the command line that goes on with a run, or does it again in another folder."""
    words = ["knownminds", "run", run.environment, *_participant(run.llm)]
    kept = run.configuration
    if run.base_url and not run.base_url.startswith("https://api."):
        words += ["--base-url", run.base_url]
    sessions = ["--sessions", str(run.n_sessions)]
    words += ["--stop", "rule.toml"] if "stop" in kept else sessions
    words += ["--seed", str(kept["seed"])]
    if "chosen" in kept:
        words += ["--questions", str(kept["chosen"]["questions"])]
        words += ["--adaptive", kept["chosen"]["model"]] if "model" in kept["chosen"] else []
    if environment.n_trials != make(run.environment, **settings_asked(environment)).n_trials:
        words += ["--trials", str(environment.n_trials)]
    for name, value in settings_asked(environment).items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    for field in fields(Sampling):
        if field.name in kept["sampling"]:
            words += [f"--{field.name.replace('_', '-')}", str(kept["sampling"][field.name])]
    words += ["--re-ask", str(kept["re_ask"])] if kept["re_ask"] else []
    if run.price is not None and run.price.source == GIVEN:
        rates = (run.price.input, run.price.output, run.price.cached_input)
        words += ["--price", ",".join(f"{rate:f}" for rate in rates if rate is not None)]
    if run.account.batches:
        words.append("--batch" if environment.replies.stand_alone else "--batch-turns")
    for name, most in run.starts[-1].caps.items():
        words += ["--cap", f"{name}={most}"]
    return shlex.join([*words, "--out", str(run.folder)])


def _participant(llm: str) -> list[str]:
    """Return the options that name a language model, or a known mind with all that makes it."""
    mind = re.fullmatch(r"(synthetic:\w+)\((.*)\)", llm)
    if mind is None:
        return ["--llm", llm]
    words = ["--llm", mind[1]]
    dials = {field.name for field in fields(Contaminants)}
    for pair in filter(None, mind[2].split(", ")):
        words += ["--contaminate" if pair.partition("=")[0] in dials else "--set", pair]
    return words


def _findings(run: Run, turns: Sequence[Turn]) -> list[Finding]:
    why = [
        f"{counted(n, 'session')} unfinished: {reason.rstrip('.')}."
        for reason, n in run.reasons.items()
    ]
    if not run.unfinished:
        why.append("Every trial was asked, and each has an outcome below.")
    if run.silent:
        why.append(f"Sessions that came to their end without a readable answer: {run.silent:,}.")
    whole = Finding(
        "Sessions:",
        f"{run.ended:,} of {run.n_sessions:,} lived to their end",
        " ".join(why),
        "good" if run.complete and not run.silent else "bad",
    )
    lost = unread_rate(run.outcomes)
    if not lost.of:
        return [whole]
    told = (
        f"{lost.count:,} of {lost.of:,} trials ({lost.share:.1%}, 95% interval {lost.low:.1%} to "
        f"{lost.high:.1%}) have no readable answer"
    )
    hint = LEFT_OUT
    if run.nothing_read:
        hint = "So there is nothing to estimate from."
    tone = "good" if lost.share < 0.05 else "fair" if lost.share < 0.2 else "bad"
    unread = next((turn for turn in turns if turn.tone), None)
    where = [(unread.title, unread.anchor)] if unread else []
    return [whole, Finding("Answers:", told, hint if lost.count else "", tone, where)]


def _sentences(run: Run, frame: pd.DataFrame) -> list[str]:
    account = run.account
    told = [
        *([f"Each of {len(frame):,} answers was read as it stands."] if _all_fine(frame) else []),
        f"{counted(run.calls, 'call')} for {counted(len(frame), 'trial')}: "
        f"{account.input_tokens:,} tokens sent, {account.output_tokens:,} received.",
        *run.looked,
    ]
    if account.reasoning_tokens:
        told.append(f"Hidden reasoning is {account.reasoning_tokens:,} of the tokens received.")
    if account.untold:
        told.append(
            f"{account.untold:,} of the {account.calls['ok']:,} answers came without their number "
            "of tokens, which then count as 0."
        )
    if run.price is None:
        told.append("No price is known, so there is no sum of money.")
    else:
        told += _about_money(run)
    if account.re_asked:
        told.append(f"Asked again after a malformed answer: {counted(account.re_asked, 'time')}.")
    if not run.unfinished and run.starts[-1].reason:
        reason = run.starts[-1].reason.rstrip(".")
        told.append(f"Nothing more would have been asked: {reason}.")
    return told


def _about_money(run: Run) -> list[str]:
    told = [f"${run.dollars_paid:f} paid for answers, ${run.dollars:f} at most in all."]
    if run.priced_from > 1:
        told.append(
            f"The price came with start {run.priced_from}; what was asked before is reckoned with "
            "it from the tokens that were kept."
        )
    if run.account.reserved:
        told.append(
            "Between the two lies what calls can have cost that have no answer, or an answer "
            "without its number of tokens."
        )
        if not run.bounded:
            told.append(
                "Where nothing bounded an answer (--max-tokens), one of "
                f"{ASSUMED_ANSWER:,} tokens is assumed for these calls; a longer one costs more."
            )
    return told


def _tables(run: Run, frame: pd.DataFrame) -> list[Table]:
    return [
        outcome_table(run.outcomes),
        table(
            "Requests",
            sorted(run.account.calls.items()),
            ("what became of it", lambda row: STATES[row[0]]),
            ("number", "{1:,}"),
        ),
        table(
            "Unfinished sessions",
            run.unfinished,
            ("session", "{session}"),
            ("trials", "{trials}"),
            ("reason", "{reason}"),
        ),
        _notes(frame),
        _sessions(frame, run.price is not None),
    ]


def _notes(frame: pd.DataFrame) -> Table:
    """Count which repairs were made and why answers could not be read, with an example each."""
    groups: list[Any] = []
    if "note" in frame:
        noted = frame[frame["note"].notna() & (frame["note"].astype(str) != "")]
        groups = sorted(noted.groupby(["outcome", "note"]), key=lambda group: -len(group[1]))
    rows = [(*key, f"{len(some):,}", _example(some)) for key, some in groups[:EXAMPLES]]
    if len(groups) > EXAMPLES:
        rest = sum(len(some) for _, some in groups[EXAMPLES:])
        rows.append(("", f"{len(groups) - EXAMPLES} others", f"{rest:,}", ""))
    return table(
        "Repairs and reasons",
        rows,
        ("outcome", "{0}"),
        ("repair or reason", lambda row: str(row[1])[:LETTERS]),
        ("trials", "{2}"),
        ("for example", "{3}"),
    )


def _example(some: pd.DataFrame) -> str:
    """Return the beginning of the first answer."""
    text = str(some["raw_text"].iloc[0] or "") if some["raw_text"].notna().any() else ""
    said = " ".join(text.split())
    return said[:LETTERS] + ("…" if len(said) > LETTERS else "")


def _sessions(frame: pd.DataFrame, priced: bool) -> Table:
    # There is no column of money as long as no answer has been paid for.
    dollars = "{money:.9f}" if "money" in frame else "0"
    return table(
        "Sessions",
        [
            {
                "session": subject,
                "trials": len(some),
                "unread": (~some["outcome"].isin(ANSWERED)).sum(),
                "again": (some["attempt"] > 1).sum(),
                "reward": some["reward"].astype(float).mean(),
                "tokens": int(some[["input_tokens", "output_tokens"]].sum().sum()),
                "money": some["money"].sum() if "money" in some else 0,
            }
            for subject, some in (frame.groupby("subject", sort=False) if len(frame) else ())
        ],
        ("session", "{session}"),
        ("trials", "{trials}"),
        ("unread", "{unread}"),
        ("asked again", "{again}"),
        ("mean reward", "{reward:.3f}"),
        ("tokens", "{tokens:,}"),
        *([("dollars for answers", dollars)] if priced else []),
    )


def _all_fine(frame: pd.DataFrame) -> bool:
    return len(frame) > 0 and bool((frame["outcome"] == Outcome.OK.value).all())


def _figures(environment: Environment, frame: pd.DataFrame) -> list[tuple[str, str]]:
    found = []
    if not _all_fine(frame):  # else a sentence says so
        found = [("What became of the answers, trial by trial.", outcomes_by_trial(frame))]
    if environment.feedback and frame["reward"].notna().any():
        caption = (
            "Mean reward of each trial over sessions, of the answers that could be read. Shaded: "
            "where it lies if the unread ones brought the least or the most seen."
        )
        found.append((caption, rewards_by_trial(frame)))
    elif "action" in frame and frame["action"].notna().any():
        caption = (
            "How often each action was the answer, with 95% intervals of Wilson, of the answers "
            "that could be read."
        )
        if _truths(environment, frame[frame["action"].notna()]):
            caption += " Hollow: its mean true probability in these trials."
        found.append((caption, actions_against_truth(environment, frame)))
    return found


def outcomes_by_trial(frame: pd.DataFrame) -> str:
    """Draw the share of each outcome over the trials of a session."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(7.2, 2.9)
    table = pd.crosstab(frame["trial"].astype(int), frame["outcome"], normalize="index")
    trial = table.index.to_numpy() + 1
    below: NDArray[np.float64] = np.zeros(len(trial))
    for outcome, colour in COLOURS.items():
        if outcome.value not in table:
            continue
        share = table[outcome.value].to_numpy()
        pale = 0.25 if outcome is Outcome.OK else 1.0  # what went wrong is what one looks for
        axis.bar(trial, share, 1.0, below, color=colour, alpha=pale, label=outcome.value,
                 linewidth=0)  # fmt: skip
        below = below + share
    axis.set(xlabel="trial", ylabel="share of sessions", ylim=(0, 1), xlim=(0.5, trial[-1] + 0.5))
    draw.key(figure, axis)
    return draw.svg(figure)


def actions_against_truth(environment: Environment, frame: pd.DataFrame) -> str:
    """Draw how often each action was the answer beside how often it should have been."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(5.2, 2.9)
    read = frame[frame["action"].notna()]
    actions = np.arange(environment.n_actions)
    counts = np.bincount(read["action"].astype(int), minlength=len(actions))
    rates = [Rate.count_of(str(a), int(counts[a]), len(read)) for a in actions]
    share = np.array([rate.share for rate in rates])
    reach = [share - [r.low for r in rates], [r.high for r in rates] - share]
    axis.bar(actions - 0.2, share, 0.36, color=draw.BLUE, yerr=reach, label="answered")
    known = _truths(environment, read)
    if known:
        mean = np.mean(known, axis=0)
        axis.bar(actions + 0.2, mean, 0.36, fill=False, edgecolor="#222222", label="true")
    axis.set_xticks(actions, [str(a) for a in actions])
    axis.set(xlabel="action", ylabel="share of answers")
    draw.key(figure, axis)
    return draw.svg(figure)


def _truths(environment: Environment, frame: pd.DataFrame) -> list[NDArray[np.float64]]:
    """Return the true probabilities of the actions, of the trials where they are known."""
    shown = frame[list(environment.fields.stimulus)].to_dict("records")
    true = [environment.truth({str(k): v for k, v in row.items()}) for row in shown]
    return [p for p in true if p is not None]


def rewards_by_trial(frame: pd.DataFrame) -> str:
    """Draw mean rewards over trials, between the bounds that missing answers leave."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(7.2, 2.9)
    trial = frame["trial"].astype(int)
    due = frame["reward"].notna() | ~frame["outcome"].isin(ANSWERED)
    trial, reward = trial[due], frame["reward"][due].astype(float)
    least, most = reward.min(), reward.max()
    table = pd.DataFrame(
        {
            "mean": reward.groupby(trial).mean(),
            "low": reward.fillna(least).groupby(trial).mean(),
            "high": reward.fillna(most).groupby(trial).mean(),
        }
    )
    x: Sequence[Any] = (table.index.to_numpy() + 1).tolist()
    axis.fill_between(x, table["low"], table["high"], color=draw.BLUE, alpha=0.25, linewidth=0)
    axis.plot(x, table["mean"], color=draw.BLUE, linewidth=1.4)
    axis.set(xlabel="trial", ylabel="mean reward", xlim=(0.5, x[-1] + 0.5))
    return draw.svg(figure)
