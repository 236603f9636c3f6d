"""Sentences of `budget`.

Facts: a `SimpleNamespace` with `content` (what budget.json holds), `sessions` (of each dry run the
calls that a session lived by the test sends, as (bytes, bytes repeated, messages, bytes of the
answer)) and `aloud` (whether thoughts are within the answers of the upper end, which these
sessions do not have).
"""

from __future__ import annotations

import math
import re
from statistics import mean, stdev

from scipy.stats import t

from claims import Claim, Explanation, Report


def numbers(text):
    return [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*\.?\d*", text)]


def ends(text):
    """Read "5" or "5 to 7"."""
    found = numbers(text)
    return found[0], found[-1]


def n_of(facts):
    return facts.content["subjects"] * facts.content["sessions"]


def interval(lows, highs, n):
    """95% prediction interval for the sum of n new sessions, from those that were lived."""
    found = []
    for values, sign in ((lows, -1), (highs, 1)):
        d, margin = len(values), 0.0
        if d > 1:
            margin = t.ppf(0.975, d - 1) * stdev(values) * math.sqrt(n + n * n / d)
        found.append(max(0.0, n * mean(values) + sign * margin))
    return min(found), max(found)


def near(told, true, slack):
    assert abs(told - true) <= slack, (told, true)


def tokens(call, high):
    """Input and answer tokens at one end: 32 or 45 per 100 bytes, 3 or 8 per message and reply."""
    sent, _, messages, said = call
    rate, marks, last = (45, 8, 4) if high else (32, 3, 0)
    return (
        math.ceil(rate * sent / 100) + marks * (messages + 1),
        math.ceil(rate * said / 100) + last,
    )


def prove_range(facts, told, value):
    """Both ends of a range, each the sum of what `value` gives for a call at that end."""
    sides = [[sum(value(c, high) for c in s) for s in facts.sessions] for high in (False, True)]
    low, high = interval(*sides, n_of(facts))
    near(told[0], math.floor(low), 1 + 1e-9 * low)
    if not facts.aloud:
        near(told[1], math.ceil(high), 1 + 1e-9 * high)


def thinking(facts, high):
    return facts.content["reasoning_tokens"]["high" if high else "low"]


def _calls(facts, words):
    told = words["calls"]
    n = numbers(told)[0]
    each = [len(session) for session in facts.sessions]
    near(n, n_of(facts) * mean(each), 1)
    fixed = set(each) == {facts.content["trials"]}
    assert told.startswith("About ") is not fixed
    assert told.endswith("call" if n == 1 else "calls")
    _input(facts, {"tokens": words["input"]})
    _output(facts, {"tokens": words["output"]})


def _input(facts, words):
    prove_range(facts, ends(words["tokens"]), lambda call, high: tokens(call, high)[0])


def _output(facts, words):
    prove_range(
        facts,
        ends(words["tokens"]),
        lambda call, high: tokens(call, high)[1] + thinking(facts, high),
    )


def _session(facts, words):
    sent = [sum(call[0] for call in session) for session in facts.sessions]
    near(numbers(words["bytes"])[0], mean(sent), 0.5)
    assert ("error" in words["error"] or "se " in words["error"]) is (len(sent) > 1)
    if len(sent) > 1:
        near(numbers(words["error"])[0], stdev(sent) / math.sqrt(len(sent)), 0.5)
    _repeated(facts, words)


def _repeated(facts, words):
    calls = [call for session in facts.sessions for call in session]
    share = sum(call[1] for call in calls) / sum(call[0] for call in calls)
    near(float(words["share"].rstrip("%")), 100 * share, 0.5)


def bill(price, facts, high):
    """Dollars of each session without a cache, of a price that is the same for all lengths."""
    (rates,) = price["rates"]
    found = []
    for session in facts.sessions:
        dollars = 0.0
        for call in session:
            sent, said = tokens(call, high)
            dollars += sent * rates["input"] + said * rates["output"]
            dollars += thinking(facts, high) * (rates["reasoning"] or rates["output"])
        found.append(dollars / 1e6 + len(session) * price["per_call"])
    return found


def _costs(facts, words):
    (cost,) = [c for c in facts.content["costs"] if c["price"]["llm"] == words["llm"]]
    low, high = interval(*(bill(cost["price"], facts, end) for end in (False, True)), n_of(facts))
    told = ends(words["dollars"])
    near(told[0], low, max(0.0051, 0.06 * low) if low > 0.095 else 0.06 * low)
    if not facts.aloud:
        near(told[1], high, max(0.0051, 0.06 * high) if high > 0.095 else 0.06 * high)


def _at_best(facts, words):
    """A cache that is used at its best never makes it dearer, nor does one that keeps it all."""
    for cost in facts.content["costs"]:
        if cost["dollars_cached"] is None:
            continue
        (rates,) = cost["price"]["rates"]
        write = rates["cache_write"] or rates["input"]
        for end, high in (("low", False), ("high", True)):
            assert cost["dollars_cached"][end] <= cost["dollars"][end] + 1e-9
            if (facts.aloud and high) or len({len(session) for session in facts.sessions}) > 1:
                continue  # the margins of both kinds of sums would be compared, too
            greedy = []
            for session in facts.sessions:
                dollars = 0.0
                for call in session:
                    sent, said = tokens(call, high)
                    kept = math.ceil((45 if high else 32) * call[1] / 100)
                    dollars += kept * rates["cached_input"] + (sent - kept) * write
                    dollars += (said + thinking(facts, high)) * rates["output"]
                greedy.append(dollars / 1e6 + len(session) * cost["price"]["per_call"])
            both = interval(greedy, greedy, n_of(facts))
            assert cost["dollars_cached"][end] <= both[high] * (1 + 1e-9) + 1e-9


def _pictures(facts, words):
    told = facts.content["image_tokens"]
    assert ends(words["tokens"]) == (told["low"], told["high"])


def _one(facts, words):
    assert len(facts.sessions) == 1


def _several(facts, words):
    assert len(facts.sessions) > 1


def _no_thoughts(facts, words):
    assert facts.content["reasoning_tokens"]["high"] == 0
    assert facts.content["settings"]["reasoning"] != "none"


def _within(facts, words):
    assert facts.aloud


def _size(facts, words):
    told = numbers(f"{words['size']} x {words['trials']}")
    subjects, sessions = facts.content["subjects"], facts.content["sessions"]
    trials = facts.content["trials"]
    assert told == [subjects, *([sessions] if sessions > 1 else []), trials]
    assert re.match(r"1 subject\b", words["size"]) or subjects > 1
    each = [len(session) for session in facts.sessions]
    near(numbers(words["calls"])[0], n_of(facts) * mean(each), 1)
    return set(each) == {trials}


def _product(facts, words):
    assert _size(facts, words)


def _at_most(facts, words):
    assert not _size(facts, words)


def _dry(facts, words):
    assert int(words["n"]) == len(facts.sessions) == facts.content["dry_runs"]
    assert (words["model"], int(words["seed"])) == (facts.content["model"], facts.content["seed"])
    sent = [sum(call[0] for call in session) for session in facts.sessions]
    near(numbers(words["bytes"])[0], mean(sent), 0.5)
    if len(sent) > 1:
        near(numbers(words["error"])[0], stdev(sent) / math.sqrt(len(sent)), 0.5)


def _sent(facts, words):
    prove_range(facts, ends(words["bytes"]), lambda call, high: call[0])
    _input(facts, words)
    _repeated(facts, words)


def _received(facts, words):
    _output(facts, words)
    told = facts.content["reasoning_tokens"]
    assert ends(words["reasoning"]) == (told["low"], told["high"])


def _thin(facts, words):
    assert any(cost["dollars_cached"] is not None for cost in facts.content["costs"])


def _frontier(facts, words):
    rows = facts.content["designs"]
    assert rows
    for row in rows:
        others = [other for other in rows if other["llm"] == row["llm"]]
        cost, power = row["dollars"]["high"], row["design"]["power"]
        cheaper = any(o["dollars"]["high"] < cost and o["design"]["power"] >= power for o in others)
        better = any(o["dollars"]["high"] <= cost and o["design"]["power"] > power for o in others)
        assert row["on_frontier"] is not (cheaper or better)


def _priced(facts, words):
    prices = [cost["price"] for cost in facts.content["costs"]]
    (price,) = [one for one in prices if one["llm"] == words["llm"]]
    (rates,) = price["rates"]
    assert float(words["input"]) == rates["input"]
    assert float(words["output"]) == rates["output"]
    cached = rates["cached_input"]
    assert words["cached"] == "unknown" if cached is None else float(words["cached"][1:]) == cached
    assert words["day"].startswith(price["date"])
    assert (price["source"] in words["who"], price["model"] in words["who"]) == (True, True)


LIVED = "sessions that the test lives and counts; tokens and interval reckoned again"
REPORT = Report(
    "budget",
    sources=(
        "validation/costs/budget.py",
        "validation/costs/budget_page.py",
        "validation/costs/dry_runs.py",
        "validation/costs/priced_designs.py",
    ),
    sentences=(
        Claim(
            "{calls}: {input} input tokens and {output} output tokens, whichever language model "
            "answers.",
            LIVED,
            _calls,
        ),
        Claim(
            "A session sends {bytes} bytes{error}; {share} of them begin as the previous prompt "
            "did.",
            LIVED,
            _session,
        ),
        Claim("{llm} costs {dollars}.", f"{LIVED}; rates in the JSON", _costs),
        Explanation(
            "Ranges hold what is not known beforehand: how many tokens the bytes make, and how "
            "long the reasoning is."
        ),
        Claim(
            "They also hold how sessions differ (95% prediction interval from the dry runs).",
            "the number of dry runs",
            _several,
        ),
        Claim(
            "Calls that fail and are made again are not included. The sum at best from cache is "
            "the least that a cache leaves to pay: caches have a shortest length, and they expire.",
            f"{LIVED}: sums without a cache, and with one that is given everything",
            _at_best,
        ),
        Claim(
            "A picture counts {tokens} tokens. Models differ widely; give image_tokens for yours.",
            "the JSON's own range",
            _pictures,
        ),
        Claim(
            "One dry run cannot show how sessions differ: the ranges do not hold that.",
            "the number of dry runs",
            _one,
        ),
        Claim(
            "The prompts ask for thoughts before the answer, and the synthetic agent has next to "
            "none: give reasoning_tokens.",
            "the settings in the JSON",
            _no_thoughts,
        ),
        Claim(
            "The upper end has the thoughts within the answers, which later prompts repeat.",
            "the settings that the test has given",
            _within,
        ),
        Explanation("What does {environment} cost with language models?"),
        # The rule of an error.
        Explanation("{name} are the lowest and the highest number per {unit}, from 0 on"),
        Explanation("up to {n} tokens"),
        Explanation("{range} tokens per answer"),
        Explanation("Dollars for the whole design, from the lowest to the highest."),
        Claim(
            "Dollars for the whole design, from the lowest to the highest. Thin lines: if each "
            "repeated beginning is read from a cache.",
            "the sums in the JSON",
            _thin,
        ),
        Explanation(
            "Bytes of the prompt of each call, mean and range of the dry runs. Dashed: how many "
            "of them begin as the previous prompt did."
        ),
        Claim(
            "Power against the upper end of the cost, with 2 Monte-Carlo standard errors. Filled "
            "and joined: the frontier, where no other design has as much power for less, or more "
            "power for as much.",
            "every pair of designs in the JSON",
            _frontier,
        ),
        Claim(
            "Budget of {environment}: {size} x {trials} trials = {calls} calls", LIVED, _product
        ),
        Claim(
            "Budget of {environment}: {size} x at most {trials} trials, about {calls} calls",
            LIVED,
            _at_most,
        ),
        Claim(
            "dry run       {n} sessions of {model}, seed {seed}; {bytes} bytes of input per "
            "session{error}",
            LIVED,
            _dry,
        ),
        Claim(
            "input         {bytes} bytes, {tokens} tokens; {share} of it begins as the previous "
            "prompt did",
            LIVED,
            _sent,
        ),
        Claim("output        {tokens} tokens, with {reasoning} of reasoning per answer", LIVED,
              _received),
        Claim(
            "{llm}: ${input} input, ${output} output, {cached} cached input per million tokens "
            "({who}, for {day})",
            "the price in the JSON",
            _priced,
        ),
    ),
)  # fmt: skip
