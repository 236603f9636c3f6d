"""Sentences of `run`.

Facts: a `SimpleNamespace` with `content` (what --json prints), `rows` (of trials.parquet; empty if
there is none), `attempts` (with `session` and the `body` of the request) and `calls`, the tables of
the ledger as they are in the file, and `server` (what the test knows of who was asked).
"""

from __future__ import annotations

import json
from decimal import Decimal

from statsmodels.stats.proportion import proportion_confint

from claims import Claim, Explanation, Report, check
from claims.run_reasons import REPORT as WHY

READ = ("ok", "repaired")


def whole(text):
    """Read "1,234" or "1,234 calls"."""
    return int(text.split()[0].replace(",", ""))


def plural(text, noun):
    """A counted noun is in the plural but for one."""
    assert text == f"{whole(text):,} {noun}{'' if whole(text) == 1 else 's'}"
    return whole(text)


def lost(facts):
    return int((~facts.rows["outcome"].isin(READ)).sum()) if len(facts.rows) else 0


def unfinished(facts):
    return {str(one["session"]): one["reason"] for one in facts.content["unfinished"]}


def _ended(facts, words):
    n = facts.content["sessions"]
    assert (whole(words["ended"]), whole(words["n"])) == (n - len(unfinished(facts)), n)


def _unfinished(facts, words):
    reasons = [reason.rstrip(".") for reason in unfinished(facts).values()]
    assert plural(words["sessions"], "session") == reasons.count(words["reason"]) > 0
    check(WHY, [words["reason"]], facts)


def _asked(facts, words):
    assert not unfinished(facts)
    for _, rows in facts.rows.groupby("subject"):
        assert not rows["trial"].duplicated().any()
        assert len(rows) == facts.server.get("trials", len(rows))
    assert facts.rows["outcome"].notna().all()
    assert facts.rows["subject"].nunique() == facts.content["sessions"]


def _silent(facts, words):
    going = unfinished(facts)
    n = 0
    for subject, rows in facts.rows.groupby("subject"):
        n += str(subject) not in going and not any(o in READ for o in rows["outcome"])
    assert whole(words["n"]) == n > 0


def _lost(facts, words):
    count, of = lost(facts), len(facts.rows)
    assert (whole(words["count"]), whole(words["of"])) == (count, of)
    low, high = proportion_confint(count, of, method="wilson")
    told = [float(words[name].rstrip("%")) for name in ("share", "low", "high")]
    for said, true in zip(told, (count / of, low, high), strict=True):
        assert abs(said - 100 * true) <= 0.05 + 1e-9


def _all_fine(facts, words):
    assert whole(words["n"]) == len(facts.rows) == (facts.rows["outcome"] == "ok").sum()


def questions(facts):
    calls = facts.calls[facts.calls["slot"] >= 0]
    return calls.groupby(["session", "turn"], sort=True)["outcome"].last()


def _all_shown(facts, words):
    n = len(questions(facts))
    assert (whole(words["n"]), plural(words["asked"], "question")) == (n, n)


def _some_shown(facts, words):
    asked = questions(facts)
    sizes = asked.groupby(level="session").size()
    first = sizes.cumsum().shift(fill_value=0) < 120
    others = asked[~asked.index.get_level_values("session").isin(sizes.index[first])]
    strange = min(int(words["most"]), int((others != "ok").sum()))
    assert plural(words["asked"], "question") == len(asked) > whole(words["n"])
    assert whole(words["n"]) == sizes[first].sum() + strange


def _nothing(facts, words):
    assert lost(facts) == len(facts.rows) > 0


def _left_out(facts, words):
    assert 0 < lost(facts) < len(facts.rows)
    gone = facts.rows[~facts.rows["outcome"].isin(READ)]
    for name in {"action", "response", "reward"} & set(gone):
        assert gone[name].isna().all()


def _calls(facts, words):
    assert plural(words["calls"], "call") == len(facts.attempts)
    assert plural(words["trials"], "trial") == len(facts.rows)
    _tokens(facts, words)


def _tokens(facts, words):
    for name, column in (("sent", "input_tokens"), ("received", "output_tokens")):
        assert whole(words[name]) == int(facts.attempts[column].fillna(0).sum())


def _hidden(facts, words):
    pairs = facts.attempts[["reasoning_tokens", "output_tokens"]].dropna().to_numpy()
    assert whole(words["n"]) == sum(int(min(pair)) for pair in pairs) > 0


def untold(facts):
    ok = facts.attempts[facts.attempts["state"] == "ok"]
    return ok[ok["input_tokens"].isna() | ok["output_tokens"].isna()]


def _untold(facts, words):
    assert whole(words["n"]) == len(untold(facts)) > 0
    if "of" in words:
        assert whole(words["of"]) == (facts.attempts["state"] == "ok").sum()


def _unpriced(facts, words):
    assert facts.content["price"] is None
    assert facts.attempts["cost"].isna().all()


def _money(facts, words):
    table = facts.attempts
    sure = (table["state"] == "ok") & ~table.index.isin(untold(facts).index)
    paid = int(table.loc[sure, "cost"].sum())
    most = int(table["cost"].fillna(table["reserved"]).sum())
    assert (Decimal(words["paid"]), Decimal(words["most"])) == (
        Decimal(paid) / 10**9,
        Decimal(most) / 10**9,
    )


def _later(facts, words):
    start = int(words["start"])
    assert start == facts.content["priced_from_start"] > 1
    assert facts.attempts["cost"].notna().all()  # also what was asked before


def _between(facts, words):
    table = facts.attempts
    open_ones = table[(table["state"] != "ok") & (table["state"] != "error_unpaid")]
    assert open_ones["cost"].fillna(open_ones["reserved"]).sum() + untold(facts)["cost"].sum() > 0


def _assumed(facts, words):
    assumed = whole(words["tokens"])
    bounds = set()
    for body, reserved in facts.attempts[["body", "reserved_tokens"]].itertuples(index=False):
        asked = json.loads(body)
        assert "max_tokens" not in asked["settings"]
        shown = [text for _, text, *_ in asked["messages"]]
        n_bytes = sum(len(text.encode()) for text in shown)
        bounds.add(reserved - n_bytes - 8 * (len(shown) + 1))
    assert assumed in bounds
    assert bounds <= {assumed, facts.server.get("answer_tokens")}


def _re_asked(facts, words):
    text = words.get("times", words.get("n"))
    assert whole(text) == int((facts.calls["slot"] > 0).sum())
    if "times" in words:
        assert plural(text, "time") > 0


def _reason_at_the_end(facts, words):
    assert not unfinished(facts)
    check(WHY, [words["reason"]], facts)


def _headline(facts, words):
    _ended(facts, words)
    assert (words["environment"], words["llm"]) == (
        facts.content["environment"],
        facts.content["llm"],
    )
    assert whole(words["read"]) == len(facts.rows) - lost(facts)
    assert whole(words["of"]) == len(facts.rows)


def _states(facts, words):
    assert whole(words["n"]) == len(facts.attempts)
    told = (
        {}
        if words["states"] == "none"
        else dict(reversed(each.split(" ", 1)) for each in words["states"].split(", "))
    )
    assert {k: int(v) for k, v in told.items()} == facts.attempts["state"].value_counts().to_dict()
    _re_asked(facts, {"n": words["again"]})


def _stopped(facts, words):
    _unfinished(facts, {"sessions": f"{int(words['n']):,} session{'s' * (words['n'] != '1')}",
                        "reason": words["reason"].rstrip(".")})  # fmt: skip


def _goes_on(facts, words):
    reasons = set(unfinished(facts).values())
    assert reasons
    assert not all("cap of" in reason for reason in reasons)


def _goes_on_with_more(facts, words):
    reasons = set(unfinished(facts).values())
    assert reasons
    assert all("cap of" in reason for reason in reasons)


def _errors(facts, words):
    assert whole(words["n"]) == (facts.rows["outcome"] == "error").sum() > 0


def _unforeseen(facts, words):
    over = facts.attempts["tokens"] > facts.attempts["reserved_tokens"]
    assert whole(words["n"]) == over.sum() > 0


def _none_read(facts, words):
    _nothing(facts, words)
    told = dict(reversed(each.split(" ", 1)) for each in words["what"].split(", "))
    counts = facts.rows["outcome"].value_counts().to_dict()
    assert {k: whole(v) for k, v in told.items()} == counts


def _nothing_again(facts, words):
    _nothing(facts, words)
    assert not unfinished(facts)
    assert set(facts.calls["state"]) <= {"done", "dead"}


def _hollow(facts, words):
    assert facts.server["truth"]


def _looked(facts, words):
    look = facts.looks[int(words["units"])]
    assert int(words["most"]) == facts.most
    for name in ("estimate", "statistic", "bound"):
        assert float(words[name]) == float(f"{look[name]:.3g}")
    goes_on, _, found = words["end"].partition(", ")
    assert goes_on == ("stops" if look["stop"] else "goes on")
    assert found == look["found"]


COUNT = "a count over the rows of trials.parquet"
LEDGER = "a count over the attempts in the ledger"
REPORT = Report(
    "run",
    sources=(
        "llm_adapters/runs/run_result.py",
        "validation/costs/run_page.py",
        "validation/costs/transcripts.py",
    ),
    sentences=(
        Claim("Sessions: {ended} of {n} lived to their end.", "the JSON's sessions", _ended),
        Claim("{sessions} unfinished: {reason}.", f"the JSON's sessions; {LEDGER}", _unfinished),
        Claim(
            "look at {units} of {most} sessions: estimate {estimate}, {statistic} against "
            "{bound}, {end}",
            "the looks of the JSON, which `tests/questions` reckons from the trials",
            _looked,
        ),
        Claim("Every trial was asked, and each has an outcome below.", COUNT, _asked),
        Claim("Sessions that came to their end without a readable answer: {n}.", COUNT, _silent),
        Claim(
            "Answers: {count} of {of} trials ({share}, 95% interval {low} to {high}) have no "
            "readable answer.",
            f"{COUNT}; Wilson's interval by statsmodels",
            _lost,
        ),
        Claim("So there is nothing to estimate from.", COUNT, _nothing),
        Claim(
            "Estimates leave them out, which is right if what is missing does not depend on what "
            "would have been said.",
            COUNT,
            _left_out,
        ),
        Claim("Each of {n} answers was read as it stands.", COUNT, _all_fine),
        Claim("{n} of {asked} are shown.", LEDGER, _all_shown),
        Claim(
            "{n} of {asked} are shown: those of the first sessions, and up to {most} of the others "
            "whose answers were repaired or not read.",
            LEDGER,
            _some_shown,
        ),
        Explanation("Of a conversation, only what is new is shown."),
        Claim("{calls} for {trials}: {sent} tokens sent, {received} received.", LEDGER, _calls),
        Claim("Hidden reasoning is {n} of the tokens received.", LEDGER, _hidden),
        Claim(
            "{n} of the {of} answers came without their number of tokens, which then count as 0.",
            LEDGER,
            _untold,
        ),
        Claim("No price is known, so there is no sum of money.", LEDGER, _unpriced),
        Claim(
            "${paid} paid for answers, ${most} at most in all.",
            "a sum over the attempts in the ledger, and the test's own bill",
            _money,
        ),
        Claim(
            "The price came with start {start}; what was asked before is reckoned with it from "
            "the tokens that were kept.",
            LEDGER,
            _later,
        ),
        Claim(
            "Between the two lies what calls can have cost that have no answer, or an answer "
            "without its number of tokens.",
            LEDGER,
            _between,
        ),
        Claim(
            "Where nothing bounded an answer (--max-tokens), one of {tokens} tokens is assumed for "
            "these calls; a longer one costs more.",
            "the tokens reserved in the ledger, less the bytes of the prompts",
            _assumed,
        ),
        Claim("Asked again after a malformed answer: {times}.", LEDGER, _re_asked),
        Claim("Nothing more would have been asked: {reason}.", LEDGER, _reason_at_the_end),
        Explanation(
            "Rates with 95% intervals of Wilson, which take the trials as independent. A trial "
            "without a readable answer has no action and no reward; nothing is put in its place."
        ),
        Explanation(
            "Asked again in a session: trials whose question was put again after a failure or a "
            "malformed answer; one that was under way when its process died does not count. Tokens "
            "of a session are those of the answers that stand, dollars those of all its answers."
        ),
        Explanation("What became of the answers, trial by trial."),
        Explanation(
            "Mean reward of each trial over sessions, of the answers that could be read. Shaded: "
            "where it lies if the unread ones brought the least or the most seen."
        ),
        Explanation(
            "How often each action was the answer, with 95% intervals of Wilson, of the answers "
            "that could be read."
        ),
        Claim(
            "How often each action was the answer, with 95% intervals of Wilson, of the answers "
            "that could be read. Hollow: its mean true probability in these trials.",
            "whether the experiment has true probabilities",
            _hollow,
        ),
        Claim(
            "{environment} with {llm}: {ended} of {n} sessions lived to their end; {read} of {of} "
            "trials have a readable answer",
            COUNT,
            _headline,
        ),
        Claim(
            "{n} calls ({states}); asked again after a malformed answer: {again}", LEDGER, _states
        ),
        Claim("{sent} tokens sent, {received} received", LEDGER, _tokens),
        Claim("no price is known", LEDGER, _unpriced),
        Claim("${paid} paid, ${most} at most", "a sum over the attempts in the ledger", _money),
        Claim("answers without a number of tokens: {n}", LEDGER, _untold),
        Claim("unfinished: {n} ({reason})", f"the JSON's sessions; {LEDGER}", _stopped),
        Claim("The same command goes on from here.", "the reasons in the JSON", _goes_on),
        Claim(
            "With larger caps the same command goes on from here.",
            "the reasons in the JSON",
            _goes_on_with_more,
        ),
        Claim("No answer could be read: {what}.", COUNT, _none_read),
        Claim("The same command asks nothing again.", LEDGER, _nothing_again),
        Claim(
            "With --retry-errors trials that brought no answer are asked again: {n}.",
            COUNT,
            _errors,
        ),
        Claim("answers with more tokens than could be foreseen: {n}", LEDGER, _unforeseen),
    ),
)
