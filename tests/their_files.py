"""Files as others keep them, made up row by row, each with the trials that are in it.

Written after the description of the formats, in plain loops, and apart from the importers: nothing
here is imported from them. A `Made` has the text of a file and the trials it holds, as dictionaries
of the columns that matter.
"""

import json
import random
from dataclasses import dataclass, field

from registries import installed


@dataclass
class Made:
    """A file: its name, its text, the trials in it, and how it is imported."""

    name: str
    text: str
    trials: list
    environment: str
    counted: dict = field(default_factory=dict)  # outcome -> how many trials
    options: dict = field(default_factory=dict)  # of import_tables


def lines(head, rows, delimiter=",", end="\n"):
    text_lines = [delimiter.join(head)] + [delimiter.join(map(str, row)) for row in rows]
    return end.join(text_lines) + end


def urns(seed=0, runs=12):
    draw = random.Random(seed)
    rows, trials = [], []
    for run in range(runs):
        for number in range(4 if run == 5 else 2):
            pair = [draw.choice((1, 2, 3, 7, 8, 9)), draw.choice((4, 5, 6))]
            lh, prior = pair if number % 2 == 0 else pair[::-1]
            red, said = draw.random() < 0.5, round(draw.random(), 2)
            bad = run == 3 and number == 0
            text = 68.0 if bad else said
            rows.append((run, number % 2 == 0, prior * 0.1, 1 - (10 - lh) * 0.1, text, red))
            session = str(run) if number < 2 else f"{run}.{number // 2}"
            trials.append({
                "subject": "engine@1.5", "session": session, "trial": number % 2,
                "prior": prior / 10, "likelihood": lh / 10, "ball": int(red),
                "response": None if bad else said, "outcome": "malformed" if bad else "ok",
            })  # fmt: skip
    head = ("run", "informative_lh", "prior", "lh", "left_pred", "red_observation")
    counted = {"ok": len(trials) - 1, "malformed": 1}
    return Made("engine@1.5.csv", lines(head, rows), trials, "probabilistic_reasoning", counted)


def games(seed=0, n=8):
    draw = random.Random(seed)
    rows, trials = [], []
    for game in range(n):
        long = 10 if game == 0 else draw.choice((5, 10))
        means = (draw.choice((40, 60)), draw.randint(35, 75))
        seen = {0: [], 1: []}
        for play in range(long):
            points = [float(round(draw.gauss(mean, 8))) for mean in means]
            choice = (0, 1, 0, 1)[play] if play < 4 else draw.randint(0, 1)
            rows.append(
                (game, play, float(means[0]), float(means[1]), *points, choice, points[choice])
            )
            if play >= 4:
                trials.append({
                    "subject": "engine", "session": "0", "trial": 6 * game + play - 4,
                    "game": game, "play": play - 4, "horizon": long - 4,
                    "count_0": len(seen[0]), "count_1": len(seen[1]),
                    "mean_0": sum(seen[0]) / len(seen[0]), "mean_1": sum(seen[1]) / len(seen[1]),
                    "action": choice, "reward": points[choice], "true_mean_0": means[0],
                })  # fmt: skip
            seen[choice].append(points[choice])
    head = ("run", "trial", "mean0", "mean1", "reward0", "reward1", "choice", "reward")
    return Made("engine.csv", "﻿" + lines(head, rows), trials, "horizon", {"ok": len(trials)})


def blocks(seed=0, runs=2):
    draw = random.Random(seed)
    rows, trials = [], []
    for run in range(runs):
        trial, better = 0, draw.randint(0, 1)
        for block, length in enumerate((21, 20, 20, 19)):
            better = 1 - better  # the machines change places after every block
            for position in range(length):
                choice, points = draw.randint(0, 1), round(draw.gauss(50, 8), 2)
                right = int(choice == better)
                last = position == length - 1
                sure = "" if (run, trial) == (0, 30) else round(draw.random(), 2)
                shown = 1 - right if last else right
                rows.append((trial, block, position, choice, points, sure, shown, run))
                ok = sure != ""
                trials.append({
                    "subject": "engine", "session": str(run), "trial": trial, "block": block,
                    "mean_0": 60 if better == 0 else 40, "mean_1": 60 if better == 1 else 40,
                    "action": choice if ok else None, "response": sure if ok else None,
                    "reward": points if ok else None, "outcome": "ok" if ok else "malformed",
                })  # fmt: skip
                trial += 1
    head = ("trial", "block", "block_trial", "choice", "reward", "confidence", "accurate", "run")
    counted = {"ok": len(trials) - 1, "malformed": 1}
    return Made("engine.csv", lines(head, rows), trials, "restless_bandit", counted)


def casinos(seed=0, runs=2, doubled=True):
    draw = random.Random(seed)
    rows, trials = [], []
    for run in range(runs):
        order = [task for task in (1, 2, 3, 4) for _ in range(6)]
        draw.shuffle(order)
        for trial, task in enumerate(order):
            pays = [float(draw.random() < 0.5) for _ in range(2)]
            choice = draw.randint(0, 1)
            row = (trial, task, 0.25, 0.75, *pays, choice, pays[choice], run)
            rows.append(row)
            if doubled:
                rows.append((trial, order[(trial + 1) % 24], *row[2:]))
            trials.append({
                "subject": "engine", "session": str(run), "trial": trial, "context": task - 1,
                "action": choice, "reward": pays[choice],
            })  # fmt: skip
    head = ("trial", "task", "mean0", "mean1", "reward0", "reward1", "choice", "reward", "run")
    return Made(
        "engine.csv", lines(head, rows), trials, "instrumental_learning", {"ok": len(trials)}
    )


def days(seed=0, runs=3):
    draw = random.Random(seed)
    rows, trials, lost = [], [], 0
    for run in range(runs):
        for again in range(2 if run == 1 else 1):  # one id stands for two runs
            for day in range(10):
                shuttle, planet = draw.choice("XY"), draw.choice("XY")
                alien = draw.choice({"X": "DF", "Y": "JK"}[planet])
                paid = draw.randint(0, 1)
                key = {"subject": "engine", "session": f"{run}.{again}" if again else str(run)}
                said, dealt = shuttle, alien
                if (run, day) == (0, 4):
                    said = "Xis"
                if (run, day) == (2, 6):
                    dealt = {"X": "J", "Y": "D"}[planet]
                rows.append((run, day, said, planet, dealt, paid, 0.4, 0.5, 0.6, 0.3))
                flown, met = said == shuttle, dealt == alien
                trials.append({**key, "trial": 2 * day, "stage": 0, "state": -1,
                               "action": "XY".index(shuttle) if flown else None,
                               "outcome": "ok" if flown else "malformed"})  # fmt: skip
                lost += not (flown and met)
                if flown:
                    trials.append({
                        **key, "trial": 2 * day + 1, "stage": 1, "state": "XY".index(planet),
                        "action": "DFJK".index(alien) % 2 if met else None,
                        "reward": paid if met else None, "outcome": "ok" if met else "malformed",
                    })  # fmt: skip
    head = ("run", "trial", "action1", "state", "action2", "reward",
            "probsA", "probsB", "probsC", "probsD")  # fmt: skip
    counted = {"ok": len(trials) - lost, "malformed": lost}
    return Made("engine.csv", lines(head, rows), trials, "two_step", counted)


def balloons(seed=0, runs=2, each=4):
    draw = random.Random(seed)
    rows, trials = [], []
    for run in range(runs):
        kinds = [most for most in (128, 32, 8) for _ in range(each)]
        draw.shuffle(kinds)
        trial = 0
        for balloon, most in enumerate(kinds):
            burst = draw.random() < 0.5
            pumps = draw.randint(1, 6) if burst else draw.randint(0, 6)
            rows.append(
                (balloon, pumps, 0 if burst else pumps, most, burst, 0, "BAC"[balloon % 3], run)
            )
            for pump in range(1, pumps + 1 + (not burst)):
                stop, bang = pump > pumps, burst and pump == pumps
                trials.append({
                    "subject": "engine", "session": str(run), "trial": trial, "balloon": balloon,
                    "type": (128, 32, 8).index(most), "pump": pump, "action": int(not stop),
                    "reward": 0 if stop else 1 - pump if bang else 1,
                })  # fmt: skip
                trial += 1
    head = (
        "trial",
        "pumps",
        "reward",
        "max_pumps",
        "exploded",
        "balloon_trial",
        "balloon_idx",
        "run",
    )
    return Made("engine.csv", lines(head, rows), trials, "balloon_risk", {"ok": len(trials)})


def people_games(seed=0, people=2, n=5):
    draw = random.Random(seed)
    rows, trials = [], []
    for person in range(people):
        name = f"p0{person}x."
        for game in range(n):
            info = draw.choice((-1, 0, 1))
            forced = {0: [1, 0, 1, 0], 1: [1, 1, 0, 1], -1: [0, 0, 1, 0]}[info]
            plays = 10 if game == 0 else draw.choice((5, 10))
            mu = (draw.choice((40, 60)), draw.randint(30, 70))
            seen = {0: [], 1: []}
            for play in range(plays):
                left = forced[play] if play < 4 else draw.randint(0, 1)
                arm = 1 - left
                points = round(draw.gauss(mu[arm], 8))
                rows.append((name, game + 1, play + 1, plays, info, *mu, mu[0] - mu[1], left,
                             round(draw.random() * 3, 3), int(mu[arm] >= max(mu)), points))  # fmt: skip  # noqa: E501
                if play >= 4:
                    trials.append({
                        "subject": name, "session": "0", "trial": 6 * game + play - 4, "game": game,
                        "play": play - 4, "horizon": plays - 4, "action": arm, "reward": points,
                        "count_0": len(seen[0]), "count_1": len(seen[1]),
                        "mean_0": sum(seen[0]) / len(seen[0]), "mean_1": sum(seen[1]) / len(seen[1]),  # noqa: E501
                    })  # fmt: skip
                seen[arm].append(points)
    head = ("Subject", "Block", "Trial", "Horizon", "Info", "mu_L", "mu_R", "delta", "Choice", "RT",
            "Accuracy", "Outcome")  # fmt: skip
    return Made("data.csv", lines(head, rows), trials, "horizon", {"ok": len(trials)})


# What each task of the collider asks, by hand: letter, query, states of C1, C2 and E (-1 unknown).
QUESTIONS = [
    ("a", 0, (-1, 1, 1)), ("a", 1, (1, -1, 1)), ("b", 0, (-1, -1, 1)), ("b", 1, (-1, -1, 1)),
    ("c", 0, (-1, 0, 1)), ("c", 1, (0, -1, 1)), ("d", 0, (-1, 1, -1)), ("d", 1, (1, -1, -1)),
    ("e", 0, (-1, 0, -1)), ("e", 1, (0, -1, -1)), ("f", 0, (-1, 1, 0)), ("f", 1, (1, -1, 0)),
    ("g", 0, (-1, -1, 0)), ("g", 1, (-1, -1, 0)), ("h", 0, (-1, 0, 0)), ("h", 1, (0, -1, 0)),
    ("i", 2, (0, 0, -1)), ("j", 2, (0, 1, -1)), ("j", 2, (1, 0, -1)), ("k", 2, (1, 1, -1)),
]  # fmt: skip
SENSES = ("ppp", "pmm", "mpm", "mmp")
DOMAINS = ("economy", "sociology", "weather")


def people_causes(seed=0, people=3):
    draw = random.Random(seed)
    rows, trials = [], []
    for person in range(people):
        domain, sense = person % 3, draw.randint(0, 3)
        order = list(range(20))
        draw.shuffle(order)
        for trial, number in enumerate(order):
            letter, query, states = QUESTIONS[number]
            shown = ",".join(f"{v}={x}" for v, x in zip("XYZ", states, strict=True) if x >= 0)
            y, rt = 5 * draw.randint(0, 20), f"{draw.random() * 9:.3f}".replace(".", ",")
            theirs = ("economy", "society", "weather")[domain]
            rows.append((person, theirs, "b", SENSES[sense], letter.upper(), f"{'XYZ'[query]}|{shown}",  # noqa: E501
                         trial, rt, y, "t", "a", '"domain, attr.polarity"', "c"))  # fmt: skip
            trials.append({
                "subject": str(person), "session": "0", "trial": trial, "query": query,
                "first": states[0], "second": states[1], "third": states[2], "domain": domain,
                "sense": sense, "response": y,
            })  # fmt: skip
    head = ("s", "domain", "diagram", "attr.polarity", "letter.type", "study.type", "trial", "rt",
            "y", "type", "aggr.type", "betw.factors", "task")  # fmt: skip
    text = "﻿" + lines(head, rows, ";")
    return Made("rw17_collider_ce.csv", text, trials, "collider", {"ok": len(trials)})


def model_causes(seed=0, passes=2):
    draw = random.Random(seed)
    rows, trials = [], []
    for again in range(passes):
        for domain in range(3):
            for pattern, sense in zip((0, 3, 5, 6), range(4), strict=True):
                for number, (letter, query, states) in enumerate(QUESTIONS[:20:3]):
                    position = 3 * number
                    letter, query, states = QUESTIONS[position]
                    id_ = 160 * domain + 20 * pattern + position + 1
                    y = draw.randint(0, 100)
                    fate, answer = "ok", str(y)
                    if (again, domain, sense, number) == (0, 0, 0, 0):
                        fate, answer = "error", "Error: API error: 429"
                    elif (again, domain, sense, number) == (0, 1, 1, 1):
                        fate, answer = "malformed", "It is perhaps rather likely, I think"
                    elif number == 2:
                        answer = f'"<response><explanation>Two lines\nof it: 12.</explanation><likelihood>{y}</likelihood></response>"'  # noqa: E501
                    name = DOMAINS[domain]
                    rows.append((id_, answer, " numeric", "collider", name, letter, SENSES[sense],
                                 "some-model", "0.7"))  # fmt: skip
                    trials.append({
                        "subject": "some-model", "session": "numeric/0.7" + (f"/{again}" if again else ""),  # noqa: E501
                        "trial": id_ - 1, "query": query, "first": states[0], "second": states[1],
                        "third": states[2], "domain": domain, "sense": sense,
                        "response": y if fate == "ok" else None, "outcome": fate,
                    })  # fmt: skip
    head = ("id", "response", "prompt_category", "graph", "domain", "task", "cntbl_cond", "subject",
            "temperature")  # fmt: skip
    counted = {"ok": len(trials) - 2, "error": 1, "malformed": 1}
    return Made("1_v_numeric_x.csv", lines(head, rows, ";"), trials, "collider", counted)


def _tabs(name, head, rows, trials, experiment, counted=None, **options):
    text = lines(head, rows, "\t")
    return Made(name, text, trials, experiment, counted or {"ok": len(trials)}, options)


def hb_bandit(seed=0, environment="instrumental_learning"):
    draw = random.Random(seed)
    rows, trials = [], []
    for person in (11, 12):
        for trial in range(20):
            choice, outcome = draw.randint(1, 2), draw.choice((1, -1))
            rows.append((person, "NA" if trial == 3 else choice, outcome))
            gap = trial == 3
            low = 0 if environment == "instrumental_learning" else -1
            trials.append({
                "subject": str(person), "session": "0", "trial": trial,
                "action": None if gap else choice - 1,
                "reward": None if gap else (1 if outcome == 1 else low),
                "outcome": "empty" if gap else "ok",
            })  # fmt: skip
    return _tabs("bandit.txt", ("subjID", "choice", "outcome"), rows, trials, environment,
                 {"ok": 38, "empty": 2}, environment=environment)  # fmt: skip


def hb_two_step(seed=0):
    draw = random.Random(seed)
    rows, trials = [], []
    for person in (11, 12):
        for day in range(15):
            first, second, paid = draw.randint(1, 2), draw.randint(1, 4), draw.randint(0, 1)
            rows.append((person, first, second, paid))
            key = {"subject": str(person), "session": "0"}
            trials.append({**key, "trial": 2 * day, "stage": 0, "state": -1, "action": first - 1})
            trials.append({**key, "trial": 2 * day + 1, "stage": 1, "state": (second - 1) // 2,
                           "action": (second - 1) % 2, "reward": paid})  # fmt: skip
    return _tabs("ts.txt", ("subjID", "level1_choice", "level2_choice", "reward"), rows, trials,
                 "two_step")  # fmt: skip


def hb_balloons(seed=0):
    draw = random.Random(seed)
    rows, trials = [], []
    for person in (11, 12):
        trial = 0
        for balloon in range(8):
            burst = draw.randint(0, 1)
            pumps = draw.randint(1, 5)
            rows.append((person, pumps, burst))
            for pump in range(1, pumps + 2 - burst):
                stop, bang = pump > pumps, burst and pump == pumps
                trials.append({
                    "subject": str(person), "session": "0", "trial": trial, "balloon": balloon,
                    "type": 0, "pump": pump, "action": int(not stop),
                    "reward": 0 if stop else 1 - pump if bang else 1,
                })  # fmt: skip
                trial += 1
    return _tabs("bart.txt", ("subjID", "pumps", "explosion"), rows, trials, "balloon_risk",
                 settings={"maxima": [12]})  # fmt: skip


def hb_cards(seed=0):
    draw = random.Random(seed)
    rows, trials = [], []
    for person in (11, 12):
        for trial in range(20):
            deck, gain = draw.randint(1, 4), draw.choice((50, 100))
            loss = draw.choice((0, -50, -250))
            rows.append((person, deck, gain, loss))
            trials.append({
                "subject": str(person), "session": "0", "trial": trial, "action": deck - 1,
                "gain": gain, "loss": -loss, "reward": gain + loss,
            })  # fmt: skip
    return _tabs("igt.txt", ("subjID", "choice", "gain", "loss"), rows, trials, "iowa_gambling")


def hb_sums(seed=0):
    draw = random.Random(seed)
    rows, trials = [], []
    for person in (11, 12):
        for trial in range(20):
            sooner, delay = draw.choice((100, 250, 400)), draw.choice((1, 6, 24))
            choice = draw.randint(0, 1)
            rows.append((person, delay, 500, 0, sooner, choice))
            trials.append({
                "subject": str(person), "session": "0", "trial": trial, "sooner_amount": sooner,
                "later_amount": 500, "later_delay": delay, "sooner_delay": 0, "action": choice,
            })  # fmt: skip
    head = ("subjID", "delay_later", "amount_later", "delay_sooner", "amount_sooner", "choice")
    return _tabs("dd.txt", head, rows, trials, "temporal_discounting")


# Of an experiment of knownminds-more.
CARDS = installed([("iowa_gambling", hb_cards)])
MADE = (
    urns, games, blocks, casinos, days, balloons, people_games, people_causes, model_causes,
    hb_bandit, hb_two_step, hb_balloons,
    *(one for _, one in CARDS), hb_sums,
)  # fmt: skip


def screens(seed=0, people=2):
    """A jsPsych file per person: instructions, choices by button, one without an answer."""
    draw = random.Random(seed)
    texts, trials = [], []
    for person in range(people):
        pages = [{"trial_type": "instructions", "trial_index": 0, "rt": 5210, "id": f"a{person}"}]
        for index in range(1, 13):
            button, silent = draw.randint(0, 1), index == 5
            points, casino = draw.randint(0, 1), index % 4
            pages.append({
                "trial_type": "html-button-response", "trial_index": index,
                "rt": None if silent else draw.randint(300, 900),
                "response": None if silent else {"Q0": "left" if button == 0 else "right"},
                "casino": casino + 1, "points": None if silent else points, "id": f"a{person}",
            })  # fmt: skip
            trials.append({
                "subject": f"a{person}", "session": "0", "trial": index, "context": casino,
                "action": None if silent else button, "reward": None if silent else points,
                "outcome": "empty" if silent else "ok",
            })  # fmt: skip
        texts.append(json.dumps(pages))
    counted = {"ok": 11 * people, "empty": people}
    return Made("study.txt", "".join(texts), trials, "instrumental_learning", counted)
