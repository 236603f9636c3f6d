"""Sentences of the table of magnitude estimation and of its pages of pictures.

Facts: a `SimpleNamespace` with `content` (what magnitude.json holds), `rows` (the trials), and for
pages of pictures `task` and `prompts` (by condition the words of a first trial, and the setting).
"""

from __future__ import annotations

import re

import numpy as np

from claims import Claim, Explanation, Report

HALF = 5.01e-4  # of the last digit that is told
TASKS = ("marker_location", "line_ratio", "maze_distance", "duration")
ABLATIONS = {
    "verbal": "text+image",
    "numeric": "text+image",
    "constant_noise": "image",
    "gradual_noise": "image",
    "long_context": "text+image",
}
MODALITIES = ("text", "image", "text+image")
WORDS = {"accuracy": "A", "efficiency": "E", "consistency": "C"}


def cell(facts, who, task, condition, modality):
    """The rows of a cell."""
    rows = facts.rows
    mine = (rows["model"] == who) & (rows["environment"] == task)
    mine &= rows["condition"] == facts.conditions.index(condition)
    return rows[mine & (rows["modality"] == MODALITIES.index(modality))]


def normalised_error(rows):
    """Root of summed squared errors over those of the middle of each window's values."""
    held = rows.dropna(subset="response")
    if not len(held):
        return np.nan
    ends = rows.groupby("window")["value"].agg(["min", "max"]).mean(axis=1)
    middle = held["window"].map(ends)
    off, constant = (((held[k] if k is not None else middle) - held["value"]) ** 2 for k in
                     ("response", None))  # fmt: skip
    return np.sqrt(off.sum() / constant.sum())


def prior_weight(rows):
    """1 minus the least-squares slope with an intercept in each window, held in [0, 1]."""
    held = rows.dropna(subset="response")
    columns = [held["value"].to_numpy()]
    columns += [(held["window"] == w).to_numpy(dtype=float) for w in held["window"].unique()]
    if len(held) <= len(columns):
        return np.nan
    solved = np.linalg.lstsq(np.column_stack(columns), held["response"].to_numpy(), rcond=None)
    return float(np.clip(1 - solved[0][0], 0, 1))


def consistency(facts, who):
    """Sum over five conditions and three tasks of whether the weight did not fall."""
    total = 0.0
    for task in TASKS[:3]:
        for condition, modality in ABLATIONS.items():
            base = prior_weight(cell(facts, who, task, "base", modality))
            weight = prior_weight(cell(facts, who, task, condition, modality))
            if np.isnan(base) or np.isnan(weight):
                return np.nan
            total += 0.0 if weight > 0.9 else 1.0 if weight >= base - 1e-9 else -1.0
    return total


def combined(facts, who, task):
    """Error of the mean of the two answers, and of the inverse-variance one, over that of both."""
    parts = [cell(facts, who, task, "base", m) for m in MODALITIES]
    keys = ["subject", "session", "window", "item", "value"]
    wide = [p.set_index(keys)["response"].rename(m) for p, m in zip(parts, MODALITIES, strict=True)]
    rows = wide[0].to_frame().join(wide[1:], how="inner").dropna().reset_index()
    ends = parts[2].groupby("window")["value"].agg(["min", "max"]).mean(axis=1)

    def error(said):
        return np.sqrt(((said - rows["value"]) ** 2).sum()
                       / ((rows["window"].map(ends) - rows["value"]) ** 2).sum())  # fmt: skip

    text, image = rows["text"], rows["image"]
    precision = [1 / said.var(ddof=1) for said in (text, image)]
    residual = [1 / ((said - rows["value"]).var(ddof=1)) for said in (text, image)]
    found = {}
    for name, (a, b) in (("bayes_responses", precision), ("bayes_residuals", residual)):
        found[name] = error((a * text + b * image) / (a + b)) / error(rows["text+image"])
    found["equal"] = error((text + image) / 2) / error(rows["text+image"])
    return found


def _parts(facts, who):
    own = [row for row in facts.content["composite"] if row["participant"] == who]
    return {row["part"]: row for row in own}


def _full(facts, label):
    """The participant behind a short name."""
    names = list(dict.fromkeys(row["participant"] for row in facts.content["composite"]))
    (name,) = [n for n in names if n == label or n[:10] == label[:10]]
    return name


def _composite(facts, words):
    who = _full(facts, words["who"])
    errors = [
        normalised_error(cell(facts, who, t, "base", "text" if t == "duration" else "text+image"))
        for t in TASKS
    ]
    accuracy = np.mean([1 - min(e, 2) / 2 for e in errors])
    assert abs(float(words["accuracy"]) - accuracy) <= HALF
    score = (consistency(facts, who) + 15) / 30
    assert abs(float(words["consistency"]) - score) <= HALF
    parts = _parts(facts, who)
    assert abs(float(words["efficiency"]) - parts["E"]["value"]) <= HALF
    composite = (accuracy + score + parts["E"]["value"]) / 3
    assert abs(float(words["value"]) - composite) <= 2 * HALF
    # Of the two published references one has a plain form; the other is the oracle.
    for task in TASKS[:3]:
        found = combined(facts, who, task)
        for row in facts.content["cues"]:
            mine = (row["participant"], row["task"], row["condition"]) == (who, task, "base")
            if mine and row["reference"] in found:
                assert abs(row["efficiency"] - found[row["reference"]]) < 0.02
    if "low" in words:
        assert float(words["low"]) <= float(words["high"])


def _simulated(facts, words):
    """Let minds that never adapt answer the same trials, by a simulation of its own."""
    _composite(facts, words)
    who, n = _full(facts, words["who"]), 300
    rng = np.random.default_rng(5)
    score = np.zeros(n)
    played = {}
    for task in TASKS[:3]:
        for condition, modality in ABLATIONS.items():
            base = cell(facts, who, task, "base", modality).dropna(subset="response")
            weight = prior_weight(base)
            fitted = {}
            for window, own in base.groupby("window"):
                mean = ((own["response"] - (1 - weight) * own["value"]) / max(weight, 1e-9)).mean()
                middle = (own["value"].min() + own["value"].max()) / 2
                mean = middle if weight < 0.02 else np.clip(mean, 0, own["ceiling"].iloc[0])
                fitted[window] = float(mean)
            x = base["value"].to_numpy()
            by = base["window"]
            aside = base["response"] - base["response"].groupby(by).transform("mean")
            apart = base["value"] - base["value"].groupby(by).transform("mean")
            slope = (aside * apart).sum() / (apart**2).sum()
            free = len(x) - by.nunique() - 1
            sigma = np.sqrt(((aside - slope * apart) ** 2).sum() / free)
            for name in ("base", condition):
                rows = cell(facts, who, task, name, modality).dropna(subset="response")
                key = (task, name, modality)
                if key in played:
                    continue
                centre = rows["window"].map(fitted).to_numpy()
                x = rows["value"].to_numpy()
                said = (1 - weight) * x + weight * centre + sigma * rng.standard_normal((n, len(x)))
                said = np.clip(said, 0, rows["ceiling"].iloc[0])
                apart = x - rows["value"].groupby(rows["window"]).transform("mean").to_numpy()
                played[key] = np.clip(1 - said @ apart / (apart @ apart), 0, 1)
            first, second = played[task, "base", modality], played[task, condition, modality]
            score += np.where(second > 0.9, 0, np.where(second >= first - 1e-9, 1, -1))
    own = (score >= consistency(facts, who)).mean()
    told = int(words["reached"].replace(",", "")) / int(words["n"].replace(",", ""))
    assert int(words["n"].replace(",", "")) == facts.content["options"]["replicates"]
    share = (own + told) / 2
    spread = share * (1 - share) * (1 / n + 1 / facts.content["options"]["replicates"])
    # Four standard errors of two shares, and a case more where both are near 0 or 1.
    assert abs(own - told) <= 4 * np.sqrt(spread) + 1 / n


def _lacks(facts, words):
    """A part that has no value names cells that are not there, or hold no answers."""
    who = _full(facts, words["who"])
    for letter, what in re.findall(r"([AEC]): (.*?)(?=; [AEC]: |$)", words["why"].rstrip(".")):
        _nothing(facts, {"who": who, "part": letter, "why": what})


def _nothing(facts, words):
    who = _full(facts, words["who"])
    missing = _parts(facts, who)[words["part"]]["missing"]
    told = words["why"].split("; ")
    more = [m for m in told if re.fullmatch(r"and \d+ more", m)]
    named = [m for m in told if m not in more]
    whole = missing.split("; ")
    assert named == whole[: len(named)]
    assert len(whole) == len(named) + sum(int(m.split(" ")[1]) for m in more)
    assert _parts(facts, who)[words["part"]]["value"] is None
    for lack in named:
        found = re.fullmatch(r"no base trials of (\w+) with (text|image|text\+image)", lack)
        if found:
            assert not len(cell(facts, who, found[1], "base", found[2]))
        found = re.fullmatch(r"no answers in (\w+) with (text|image|text\+image)", lack)
        if found:
            assert cell(facts, who, found[1], "base", found[2])["response"].isna().all()
        found = re.fullmatch(r"no base trials of (\w+) with text, with image and with both", lack)
        if found:
            assert any(not len(cell(facts, who, found[1], "base", m)) for m in MODALITIES)
        found = re.fullmatch(r"(\w+) (\w+): no (\w+) trials with (\S+?)(?:, .*)?", lack)
        if found:
            assert not len(cell(facts, who, found[1], found[3], found[4]))


def _trials(facts, words):
    n = int(words["n"].replace(",", ""))
    assert n == len(facts.rows)
    assert words["noun"] == ("trial" if n == 1 else "trials")


def _intervals(facts, words):
    options = facts.content["options"]
    assert int(words["rounds"]) == options["rounds"] > 0
    assert words["mass"] == f"{100 * options['mass']:.0f}%"
    known = [row for row in facts.content["cells"] if row["error"] is not None]
    assert all(row["low"] <= row["high"] for row in known)


def _ends(facts, words):
    rows = facts.rows
    gone = int(rows["response"].isna().sum())
    ends = ((rows["response"] <= 0) | (rows["response"] >= rows["ceiling"])).sum()
    assert (int(words["missing"].replace(",", "")), int(words["ends"].replace(",", ""))) == (
        gone,
        ends,
    )


def _no_base(facts, words):
    assert not (facts.rows["condition"] == facts.conditions.index("base")).any()


def _no_cues(facts, words):
    base = facts.rows[facts.rows["condition"] == facts.conditions.index("base")]
    some = base[base["environment"] != "duration"]
    counts = some.groupby(["model", "environment"])["modality"].nunique()
    assert not (counts == 3).any()


def _tables(facts, words):
    """All cells of the table, from the rows: so that what its heads say is so."""
    for row in facts.content["cells"]:
        own = cell(facts, *(row[k] for k in ("participant", "task", "condition", "modality")))
        error, weight = normalised_error(own), prior_weight(own)
        for told, found in ((row["error"], error), (row["prior_weight"], weight)):
            assert (told is None) == bool(np.isnan(found))
            assert told is None or abs(told - found) < 1e-6


def _lines_of_cells(facts, words):
    """There is a row where a base cell with all that a task shows has two answers or more."""
    assert words["base"] == "base"
    told = {(row["participant"], row["task"]) for row in facts.content["evidence"]}
    enough = set()
    for who in facts.rows["model"].unique():
        for task in TASKS:
            shown = "text" if task == "duration" else "text+image"
            if cell(facts, who, task, "base", shown)["response"].notna().sum() >= 2:
                enough.add((who, task))
    assert {task for _, task in told} == {task for _, task in enough}
    assert len(told) == len(enough)


def _beside_lines(facts, words):
    who = _full(facts, words["who"])
    own = [row for row in facts.content["evidence"] if row["participant"] == who]
    known = [row for row in own if row["p"] is not None and np.isfinite(row["p"])]
    ranks = [row["p"] * (row["lines"] + 1) for row in known]  # of the participant, from the top
    assert all(abs(rank - round(rank)) < 1e-9 and rank >= 1 for rank in ranks)
    rare = [
        rank <= 0.05 * (row["lines"] + 1) + 1e-9 for rank, row in zip(ranks, known, strict=True)
    ]
    assert int(words["found"]) == sum(rare)
    assert words["tasks"] == f"{len(known)} task{'s' * (len(known) != 1)}"
    assert float(words["level"]) == 0.05
    assert abs(float(words["chance"]) - 0.05 * len(known)) <= 5e-3
    for row, is_rare in zip(known, rare, strict=True):
        if is_rare and row["lines"] >= 39:
            assert row["evidence"] >= row["high"]
        if row["evidence"] < row["low"]:
            assert not is_rare


def _pages(facts, words):
    played = [task for task in TASKS if (facts.rows["environment"] == task).any()]
    assert words["pages"] == ", ".join(f"{task}.html" for task in played)


def _condition(facts, words):
    """The settings of the condition, and the words of its prompts themselves."""
    condition = words["condition"]
    place, plain, prompt = facts.prompts[condition]
    assert int(words["context"]) == place.context
    assert float(words.get("blur", 0.0)) == place.blur
    assert bool(words.get("growing")) == (condition == "gradual_noise")
    steered = condition in ("verbal", "numeric", "numeric_biased")
    assert ("added" in words) == steered
    if steered:
        added = words["added"]
        assert added in " ".join(prompt.split("\n"))
        assert added not in " ".join(plain.split("\n"))


def _words_alone(facts, words):
    assert facts.task == "duration"
    assert words["condition"] in ("constant_noise", "gradual_noise")


def _asked(facts, words):
    own = facts.rows[facts.rows["environment"] == facts.task]
    assert int(words["n"].replace(",", "")) == len(own)
    assert int(words["missing"].replace(",", "")) == own["response"].isna().sum()


def _blurred(facts, words):
    """The blur grows evenly from 0 to its end over the trials, or is the same in all."""
    place, *_ = facts.prompts[facts.condition]
    share = (int(words["n"]) - 1) / (place.n_items - 1)
    growing = share if facts.condition == "gradual_noise" else 1.0
    assert float(words["blur"]) == round(place.blur * growing)


REPORT = Report(
    "magnitude table",
    sources=(
        "validation/magnitudes/magnitude_table.py",
        "validation/magnitudes/magnitude_page.py",
        "validation/magnitudes/magnitude_task_page.py",
    ),
    sentences=(
        Claim(
            "{who}: composite {value} ({low} to {high}). accuracy {accuracy}, efficiency "
            "{efficiency}, consistency {consistency}. Of {n} simulated observers with the same "
            "noise that never adapt, {reached} score at least this consistency.",
            "errors, prior weights and scores of the rows in NumPy; a simulation of such observers",
            _simulated,
        ),
        Claim(
            "{who}: composite {value} without an interval. accuracy {accuracy}, efficiency "
            "{efficiency}, consistency {consistency}. Of {n} simulated observers with the same "
            "noise that never adapt, {reached} score at least this consistency.",
            "errors, prior weights and scores of the rows in NumPy; a simulation of such observers",
            _simulated,
        ),
        Claim(
            "{who}: composite {value} ({low} to {high}). accuracy {accuracy}, efficiency "
            "{efficiency}, consistency {consistency}; no known minds beside it.",
            "errors, prior weights and scores of the rows in NumPy",
            _composite,
        ),
        Claim(
            "{who}: composite {value} without an interval. accuracy {accuracy}, efficiency "
            "{efficiency}, consistency {consistency}; no known minds beside it.",
            "errors, prior weights and scores of the rows in NumPy",
            _composite,
        ),
        Claim("{who}: no composite. It lacks {why}", "the rows of the cells named", _lacks),
        Claim("{who} has no {part}: {why}", "the rows of the cells named", _nothing),
        Claim("magnitude estimation, {n} {noun}", "a count over the rows", _trials),
        Claim(
            "{mass} intervals of {rounds} bootstraps that keep the sessions",
            "the options, and the ends of all intervals in the JSON",
            _intervals,
        ),
        Claim(
            "Trials without a readable answer, left out and counted: {missing}. Answers at an end "
            "of the scale: {ends}.",
            "counts over the rows",
            _ends,
        ),
        Claim(
            "condition {base}: NRMSE (0 perfect, 1 the middle of each window), prior weight of a "
            "static Bayesian observer, evidence for factors",
            "errors and least-squares slopes of the rows in NumPy",
            _tables,
        ),
        Claim(
            "condition {base}: evidence for a Bayesian observer beside that of straight lines with "
            "the participant's noise",
            "which cells of the rows have two answers",
            _lines_of_cells,
        ),
        Claim(
            "{who}: more evidence for a Bayesian observer than straight lines with the same noise "
            "show (p at most {level}) in {found} of {tasks}; by chance it is {chance}.",
            "ranks among the lines, counted from the p-values of the JSON",
            _beside_lines,
        ),
        Claim("condition {base}: not played", "the conditions of the rows", _no_base),
        Explanation("RRE, error of a reference over that of the answers, condition {base}"),
        Claim(
            "RRE, condition {base}: none, no task was played in all modalities",
            "the modalities of the rows",
            _no_cues,
        ),
        Explanation("The composite and its parts. What is missing is not drawn."),
        Claim(
            "The composite and its parts. What is missing is not drawn. Lines: {mass} intervals of "
            "{rounds} bootstraps that keep the sessions.",
            "the options, and the ends of all intervals in the JSON",
            _intervals,
        ),
        Explanation(
            "Error in the base condition, with all that a task shows, against the evidence for a "
            "Bayesian observer, the efficiency of combining cues (mean of the two published "
            "references) and the consistency score; means over tasks."
        ),
        Explanation(
            "The consistency score (black) among the scores of known minds with the participant's "
            "own noise in the same design: mean and 2 standard deviations."
        ),
        Explanation(
            "NRMSE: error in units of that of a constant answer at the middle of each window, "
            "squared errors pooled over windows; bias and variance are the parts of its square. "
            "RRE: error of a reference over that of the answers to text and image; above 1 the "
            "answers are the better. Consistency: how often the prior weight of a static Bayesian "
            "observer is at least that of the base condition where it should grow, less how often "
            "it is not; a weight above {limit} counts 0."
        ),
        Explanation(
            "The consistency score cannot be read alone. An observer without any error earns the "
            "maximum; one that never adapts earns 0 only on average, with a wide spread, and more "
            "where its weight is near 0: therefore the known minds beside it."
        ),
        Explanation(
            "Bootstraps add noise of their own to every weight, which draws scores by sign towards "
            "0: the interval of a consistency score near its ends, and with it that of the "
            "composite, may lie beside the value."
        ),
        Explanation(
            "Evidence is a share of likelihoods at their maxima, and a straight line shows some by "
            "noise alone. Beside it stands that of straight lines, each fitted to the participant "
            "in the base condition and answering the same stimuli; p is the share of them, with "
            "the participant, that show as much or more."
        ),
        Explanation(
            "Trials without a readable answer are left out and counted; nothing is put in their "
            "place. A part that lacks a task, a modality or a condition has no value."
        ),
        Explanation("equal: the mean of both answers."),
        Explanation(
            "linear: the weight in [0, 1] that fits the combined answers best, by least squares."
        ),
        Explanation(
            "bayes_responses: weights by the inverse variances of the answers themselves, as "
            "published (non-oracle); most of that variance is the stimuli's, so that they are near "
            "one half."
        ),
        Explanation("bayes_residuals: weights by the inverse variances of the answers' errors."),
        Explanation(
            "bayes_oracle: the truth is regressed on the answers of each modality, and what that "
            "predicts is combined by generalised least squares; weights may be negative."
        ),
        Claim("Pictures of each task: {pages}.", "the tasks of the rows", _pages),
        Explanation(
            "A stimulus as each condition shows it as shipped: blur in pixels, earlier trials "
            "retold."
        ),
        Explanation(
            "Answers against stimuli in the base condition: single answers (light), their means "
            "(dots), and static Bayesian observers fitted to them (lines), by window. Lines less "
            "steep than the dashed one, of perfect answers, are regression to the mean. Dotted: "
            "the linear observer, which has one line for all windows."
        ),
        Explanation(
            "Prior weight of the static Bayesian observer by condition; the dashed line is that of "
            "the base condition."
        ),
        Explanation(
            "Answers of the first session in the order of the trials (dots), the stimuli (grey) "
            "and the beliefs of the sequential observer fitted to all answers (lines), which "
            "begins anew in each window."
        ),
        Explanation(
            "Weight of the text in answers to text and image, by the blur of the image; hollow: "
            "the weight that the errors of the answers to each would deserve (inverse variances)."
        ),
        Claim(
            "Intervals: {mass}, percentiles of {rounds} bootstraps; sessions stay as they were.",
            "the options, and the ends of all intervals in the JSON",
            _intervals,
        ),
        *(
            Claim(
                f"{{condition}}: as shipped, {{context}} earlier trials retold{more}.",
                "the settings and the prompts of first trials",
                _condition,
            )
            for more in (
                "",
                "; blur of {blur} px{growing}",
                "; each window in reversed order",
                "; added words: “{added}”",
            )
        ),
        Explanation("Bayesian consistency score (-15 to 15; 5 comparisons a task)"),
        Claim(
            "{condition}: not of this task, whose stimuli are words alone.",
            "the modalities of the task",
            _words_alone,
        ),
        Claim("{n}, {missing} without an answer", "counts over the rows of the task", _asked),
        Claim(
            "trial {n}, blur {blur} px",
            "the blur that the design gives to that trial",
            _blurred,
        ),
    ),
)
