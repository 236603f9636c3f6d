"""What the files of others hide: no answer is lost, and every row is counted."""

import json
import random
import re

import pandas as pd
import pytest
import their_files

from knownminds import export_trials, import_trials
from knownminds.agents import HyperbolicDiscounter, simulate
from knownminds.environments import TemporalDiscounting

CASINOS = "run,trial,task,choice,reward"
JUDGES = (
    "id;response;reasoning_effort;verbosity;prompt_category;graph;domain;task;cntbl_cond;subject;"
    "temperature"
)
SENSES, TASKS = {0: "ppp", 3: "pmm", 5: "mpm", 6: "mmp"}, "aabbccddeeffgghhijjk"


def write(folder, name, *lines, last="\n"):
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + last)
    return file


def judgements(domains, effort="", errors=(), verbosity=""):
    """The rows of a causal file: its numbers say what each prompt asked."""
    for index in range(160 * len(domains)):
        sense = SENSES.get(index // 20 % 8)
        if sense:
            reply = "Error: API error: 429" if index in errors else index % 100
            yield (
                f"{index + 1};{reply};{effort};{verbosity};numeric;collider;"
                f"{domains[index // 160]};{TASKS[index % 20]};{sense};engine;0.0"
            )


@pytest.fixture
def imported(knownminds, tmp_path):
    """Import files; return the trials and the rows left out or unreadable, by reason."""

    def run(*words):
        out = tmp_path / "out.csv"
        code, printed, errors = knownminds("import", *words, "--out", out, "--json")
        assert code == 0, errors
        account = json.loads(printed)["account"]
        counted = {
            e["what"]: e["rows"] for e in account["entries"] if e["rows"] and e["kind"] != "derived"
        }
        return pd.read_csv(out, dtype={"session": str, "domain": str}), counted

    return run


def test_configurations_of_a_model_are_participants_with_the_names_of_runs(imported, tmp_path):
    rows = [
        *judgements(["economy"], "low"),
        *judgements(["economy"], "high"),
        *judgements(["economy"], "high", verbosity="low"),
    ]
    trials, counted = imported(write(tmp_path, "f.csv", JUDGES, *rows))
    assert not counted
    low, high = "engine?reasoning_effort=low", "engine?reasoning_effort=high"
    sizes = trials.groupby("subject").size()
    assert sizes.to_dict() == dict.fromkeys((low, high, f"{high}&verbosity=low"), 80)
    assert trials["session"].nunique() == 1  # nobody passes twice


def test_whole_numbers_written_with_a_point_are_whole(imported, tmp_path):
    file = write(tmp_path, "f.csv", CASINOS, "0.0,0,1,0,1", "0.0,1,1,1,0", "1.0,0,1,1,1")
    trials, counted = imported(file)
    assert trials[["subject", "session"]].values.tolist() == [["f", "0"], ["f", "0"], ["f", "1"]]
    assert counted == {}


@pytest.mark.parametrize(("name", "first"), [("meta-RL.csv", 0), ("another.csv", 1)])
def test_casinos_are_numbered_from_1_but_by_one_learner_from_0(imported, tmp_path, name, first):
    rows = [f"0,{trial},{first + trial},0,1" for trial in range(4)]
    trials, counted = imported(write(tmp_path, name, CASINOS, *rows))
    assert trials["context"].tolist() == [0, 1, 2, 3]
    assert counted == {}


@pytest.mark.parametrize(("row", "n"), [("0,1,1,1,0", 2), ("0,1,1,1", 1)])
def test_a_last_line_without_a_line_break_counts_if_it_is_whole(imported, tmp_path, row, n):
    file = write(tmp_path, "f.csv", CASINOS, "0,0,1,0,1", row, last="")
    trials, counted = imported(file)
    assert len(trials) == n
    assert sum(counted.values()) == 2 - n


@pytest.mark.parametrize("codes", [("1", "2"), ("left", "right"), ("TRUE", "FALSE")])
def test_choices_in_another_code_are_a_question_and_no_file(knownminds, tmp_path, codes):
    rows = [f"0,{trial},1,{codes[trial % 2]},1" for trial in range(20)]
    file = write(tmp_path, "f.csv", CASINOS, *rows)
    code, _, errors = knownminds("import", file, "--out", tmp_path / "out.csv")
    assert code == 2
    assert "--map" in errors
    assert all(word in errors for word in codes)
    assert not (tmp_path / "out.csv").exists()


def test_a_few_choices_in_another_code_are_answers_that_cannot_be_read(imported, tmp_path):
    rows = [f"0,{trial},1,{2 if trial == 7 else trial % 2},1" for trial in range(20)]
    trials, _ = imported(write(tmp_path, "f.csv", CASINOS, *rows))
    assert trials["outcome"].value_counts().to_dict() == {"ok": 19, "malformed": 1}


def test_a_condition_that_is_not_available_makes_no_other_participant(imported, tmp_path):
    stories = ["economy", "society", "weather"]
    rows = [*judgements(stories, "N/A")]
    trials, _ = imported(write(tmp_path, "1_v_a.csv", JUDGES, *rows[:100], *rows[100:]))
    assert trials["subject"].unique().tolist() == ["engine"]


def test_missing_names_a_gap_in_every_format(imported, tmp_path):
    file = write(tmp_path, "f.csv", CASINOS, "0,0,1,0,1", "0,1,1,none,none")
    trials, counted = imported(file, "--missing", "none")
    assert trials["outcome"].tolist() == ["ok", "empty"]
    assert counted == {"'choice' is empty": 1}


@pytest.mark.parametrize("control", ["true", "false"])
def test_overloads_and_their_controls_are_read_whole(imported, tmp_path, control):
    domains = ["econ_ovl_d=soc", "soc_ovl_d=econ", "weath_ovl_d=econ"]
    domains += [f"{name.partition('=')[0]}=ctl" for name in domains]
    file = write(tmp_path, "f.csv", JUDGES, *judgements(domains, errors={60, 700}))
    trials, counted = imported(file, "--set", f"control={control}")
    assert trials["outcome"].value_counts().to_dict() == {"ok": 239, "error": 1}
    assert sorted(counted.values()) == [1, 240]  # the error, and the other half of the file
    assert trials.groupby("domain").size().tolist() == [80, 80, 80]


def test_errors_without_a_domain_have_that_of_their_number(imported, tmp_path):
    rows = [*judgements(["economy", "society", "weather"], errors={1, 161})]
    rows[1] = rows[1].replace(";economy;", ";;")
    trials, counted = imported(write(tmp_path, "f.csv", JUDGES, *rows))
    assert trials["outcome"].value_counts().to_dict() == {"ok": 238, "error": 2}
    assert trials.groupby("domain").size().tolist() == [80, 80, 80]
    assert list(counted.values()) == [2]


def test_failed_calls_of_stories_that_nobody_names_keep_their_place(imported, tmp_path):
    """Prompts go through the stories in order, so that one that is named tells the others."""
    rows = [*judgements(["economy", "society", "weather"], errors=set(range(100, 480)))]
    rows = [*rows[:80], *(re.sub(";(economy|society|weather);", ";;", row) for row in rows[80:])]
    trials, _ = imported(write(tmp_path, "f.csv", JUDGES, *rows))
    assert trials.groupby("domain").size().tolist() == [80, 80, 80]
    assert trials["outcome"].value_counts()["error"] >= 160


def test_a_file_of_errors_alone_is_put_into_no_domain(imported, tmp_path):
    errors = [f"{k + 1};Error: x;numeric;engine;0.0" for k in range(20)]
    alone = write(tmp_path, "e.csv", "id;response;prompt_category;subject;temperature", *errors)
    whole = write(tmp_path, "f.csv", JUDGES, *judgements(["economy", "society", "weather"]))
    trials, counted = imported(alone, whole)
    assert len(trials) == 240
    assert 20 in counted.values()


def test_two_files_of_one_engine_are_sessions_apart_and_a_copy_is_left_out(imported, tmp_path):
    first = write(tmp_path, "a/f.csv", CASINOS, "0,0,1,0,1", "0,1,1,1,0")
    other = write(tmp_path, "b/f.csv", CASINOS, "0,0,1,1,1", "0,1,1,1,0")
    copy = write(tmp_path, "c/f.csv", CASINOS, "0,0,1,0,1", "0,1,1,1,0")
    trials, counted = imported(first, other, copy)
    assert trials.groupby("session", sort=False)["action"].agg(list).tolist() == [[0, 1], [1, 1]]
    assert trials["subject"].unique().tolist() == ["f"]
    assert list(counted.values()) == [2]


@pytest.mark.long
def test_each_condition_of_a_file_is_a_row_of_the_page(imported, knownminds, tmp_path):
    """Two kinds of prompt, two versions of the words, and abstract names; one agent."""
    stories = ["economy", "society", "weather"]
    names = ["abs_alnum_10", "abs_all_10", "abs_num_symb_10"]
    kinds = {"1_v_a.csv": (stories, "numeric"), "1_v_b.csv": (stories, "CoT"),
             "2_v_c.csv": (stories, "numeric"), "1_v_d.csv": (names, "numeric")}  # fmt: skip
    for name, (domains, kind) in kinds.items():
        rows = [row.replace(";numeric;", f";{kind};") for row in judgements(domains)]
        trials, _ = imported(write(tmp_path, name, JUDGES, *rows))
        assert trials["domain"].unique().tolist() == ["0", "1", "2"]
        (tmp_path / "out.csv").rename(tmp_path / f"trials_{name}")
    files = [tmp_path / f"trials_{name}" for name in kinds]
    code, printed, errors = knownminds("score", *files, "--json")
    assert code == 0, errors
    rows = json.loads(printed)["parts"]["answers"]
    read = {(row["setting"], row["prompt"]): row["read"] for row in rows}
    assert read == {
        ("stories, template 1", "number"): 240, ("stories, template 2", "number"): 240,
        ("stories, template 1", "chain of thought"): 240, ("abstract, template 1", "number"): 240,
    }  # fmt: skip
    # People know of no template, and a file may lack the columns of conditions altogether.
    people = pd.read_csv(files[0]).drop(columns=["content", "overload", "reasoning", "template"])
    people.assign(model="people").to_csv(tmp_path / "people.csv", index=False)
    code, printed, errors = knownminds("score", *files, tmp_path / "people.csv", "--json")
    assert code == 0, errors
    rows = json.loads(printed)["parts"]["answers"]
    read = [(row["setting"], row["prompt"]) for row in rows if row["participant"] == "people"]
    assert read == [("stories", "number")]


def plays(choices, horizon, game=1, means="40,60"):
    """A game of people: two forced plays of each machine, then the choices; None is no row."""
    for number, choice in enumerate(("1", "1", "0", "0", *choices), 1):
        if choice is not None:
            points = "" if choice == "" else "50"
            yield f"p,{game},{number},{horizon},0,{means},-20,{choice},0.5,1,{points}"


def test_a_play_that_was_not_made_is_a_trial_without_an_answer(imported, tmp_path):
    head = "Subject,Block,Trial,Horizon,Info,mu_L,mu_R,delta,Choice,RT,Accuracy,Outcome"
    rows = [*plays("101010", 10), *plays(("1", "", "0", "0", "1", "0"), 10, game=2)]
    rows += plays(("1", None, "0", "0", "1", "0"), 10, game=3)  # what was seen is unknown
    trials, counted = imported(write(tmp_path, "h.csv", head, *rows))
    assert trials["outcome"].value_counts().to_dict() == {"ok": 11, "empty": 1}
    assert sorted(counted.values()) == [1, 9]
    second = trials[trials["game"] == 1]
    assert second["count_1"].tolist() == [2, 2, 2, 3, 4, 4]  # Choice 0 is machine 1
    assert second["count_0"].tolist() == [2, 3, 3, 3, 3, 4]


def test_a_game_whose_true_means_change_is_left_out_for_that_reason(imported, tmp_path):
    head = "run,trial,mean0,mean1,reward0,reward1,choice,reward"
    machine = (0, 0, 1, 1, 0)
    rows = [
        f"{run},{t},{61 if run and t == 3 else 60},50,57,49,{arm},{49 if arm else 57}"
        for run in (0, 1)
        for t, arm in enumerate(machine)
    ]
    trials, counted = imported(write(tmp_path, "h.csv", head, *rows))
    assert len(trials) == 1
    assert counted == {"a play of a game whose true means change": 5}


CASINO = ("--environment", "instrumental_learning", "--map")
OURS = "trial=t,context=casino,action=machine"


def test_a_spreadsheet_that_names_its_delimiter_is_read(imported, tmp_path):
    file = write(tmp_path, "s.csv", "sep=;", "id;t;casino;machine;won", "7;0;0;1;1", "7;1;0;0;0")
    trials, _ = imported(file, *CASINO, f"subject=id,{OURS},reward=won")
    assert trials["action"].tolist() == [1, 0]


def test_a_file_per_person_and_the_points_of_the_chosen_option(imported, tmp_path):
    rows = ("t,casino,machine,r0,r1", "0,0,1,0,1", "1,0,0,0,1", "2,1,,0,1")
    files = [write(tmp_path, name, *rows) for name in ("anna.csv", "bert.csv")]
    trials, _ = imported(*files, "--subject-from-file", *CASINO, OURS, "--map",
                         "reward: by action r0, r1")  # fmt: skip
    assert trials["subject"].tolist() == ["anna"] * 3 + ["bert"] * 3
    assert trials["reward"].tolist()[:2] == [1, 0]
    assert trials["outcome"].tolist() == ["ok", "ok", "empty"] * 2


def test_several_files_of_the_same_people_are_joined(imported, tmp_path):
    head, words = "id,t,casino,machine,won", (*CASINO, f"subject=id,{OURS},reward=won")
    first = write(tmp_path, "a.csv", head, "p,0,0,1,1", "p,1,0,0,0")
    later = write(tmp_path, "b.csv", head, "p,2,0,1,1", "p,3,0,0,0")
    trials, _ = imported(first, later, *words)
    assert trials[["subject", "session", "trial"]].values.tolist() == [
        ["p", "0", trial] for trial in range(4)
    ]


@pytest.mark.parametrize(
    ("name", "text", "remedy"),
    [
        ("wide.csv", "id,c1,c2,c3,c4,c5,c6\n1,0,0,1,1,0,1\n", "wide_to_long"),
        ("book.xlsx", "PK", "CSV"),
    ],
)
def test_what_is_no_long_table_is_told_how_to_become_one(knownminds, tmp_path, name, text, remedy):
    (tmp_path / name).write_text(text)
    code, _, errors = knownminds("import", tmp_path / name, "--out", tmp_path / "out.csv")
    assert code == 2
    assert name in errors
    assert remedy in errors
    assert not (tmp_path / "out.csv").exists()


def test_an_encoding_is_used_to_know_the_format(imported, tmp_path):
    file = tmp_path / "f.tsv"
    file.write_bytes("subjID\tchoice\toutcome\nGerät\t1\t1\nGerät\t2\t-1\n".encode("cp1252"))
    trials, _ = imported(file, "--encoding", "cp1252")
    assert trials["subject"].unique().tolist() == ["Gerät"]


def test_columns_that_are_not_kept_are_named(knownminds, tmp_path):
    file = write(tmp_path, "f.csv", f"{CASINOS},rt", "0,0,1,0,1,.5", "0,1,1,1,0,.4")
    _, printed, _ = knownminds("import", file, "--json")
    whats = [entry["what"] for entry in json.loads(printed)["account"]["entries"]]
    assert any("rt" in what.split(": ")[-1].split(", ") for what in whats)


@pytest.mark.parametrize("method", ["map", "hierarchical"])
def test_a_fit_of_no_readable_answer_is_refused(knownminds, tmp_path, method):
    head = "environment,subject,session,trial,context,action,reward,outcome"
    rows = [f"instrumental_learning,{who},0,{t},0,,,malformed" for who in "ab" for t in range(4)]
    file, out = write(tmp_path, "t.csv", head, *rows), tmp_path / "fit"
    code, _, errors = knownminds("fit", file, "--model", "rescorla_wagner", "--method", method,
                                 "--out", out)  # fmt: skip
    assert code == 2
    assert "8 malformed" in errors
    assert not out.exists()


def test_the_order_is_that_of_the_trials_also_in_capitals_and_a_minus_is_a_minus(
    imported, tmp_path
):
    rows = [f"1\t{k}\t{1 + (k > 20)}\t{chr(0x2212) if k % 2 else ''}1" for k in range(40, 0, -1)]
    trials, _ = imported(write(tmp_path, "f.txt", "subjID\tTrial\tchoice\toutcome", *rows))
    trials = trials.sort_values("trial")
    assert trials["action"].tolist() == [0] * 20 + [1] * 20
    assert trials["reward"].tolist() == [0, 1] * 20


BANDIT, DAYS = "subjID,choice,outcome", "run,trial,action1,state,action2,reward"
PLAYS = "run,trial,mean0,mean1,reward0,reward1,choice,reward"
OTHER_CODES = {  # head, rows, and what the map that is told brings: answers and rewards
    "choices from 0": (BANDIT, [f"1,{k % 2},1" for k in range(40)], [0, 1], [1]),
    "a code below": (BANDIT, [f"1,{0 if k == 7 else 1 + k % 2},1" for k in range(40)], None, None),
    "amounts": (BANDIT, [f"1,{1 + k % 2},{25 - 50 * (k % 2)}" for k in range(40)], [0, 1], [0, 1]),
    "casinos from 0": (CASINOS, [f"0,{k},{k % 4},{k % 2},1" for k in range(40)], [0, 1], [1]),
    "aliens of a planet": (
        "subjID,level1_choice,level2_choice,reward",
        [f"1,{1 + k % 2},{1 + k // 2 % 2},1" for k in range(40)], None, None,
    ),
    "words": (BANDIT, [f"1,{'ba'[k % 2]},1" for k in range(40)], [0, 1], [1]),
    "one answer": (BANDIT, ["1,2,1"] * 38 + ["1,x,1"] * 2, None, None),
    "casinos": (CASINOS, [f"0,{k},1,{k % 2},{25 * (k % 2)}" for k in range(40)], [0, 1], [0, 1]),
    "games": (PLAYS, [f"{k // 5},{k % 5},6,5,7,7,{'RL'[k % 2]},7" for k in range(40)], [0, 1], [7]),
    "confidences": (
        "run,trial,block,block_trial,choice,reward,confidence,accurate",
        [f"0,{k},0,{k},{k % 2},50,{60 + k % 9},1" for k in range(20)], [0, 1], [50],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHER_CODES)
def test_codes_of_another_scheme_are_refused_with_the_map_that_fits(
    imported, knownminds, tmp_path, case
):
    head, rows, actions, rewards = OTHER_CODES[case]
    file = write(tmp_path, "f.csv", head, *rows)
    code, _, errors = knownminds("import", file, "--out", tmp_path / "out.csv")
    assert code == 2
    assert not (tmp_path / "out.csv").exists()
    if actions is None:  # which code stands for no answer is for the user to say
        assert re.search(r"--missing (0|x)\.|--map state=COLUMN\.", errors)
        return
    line = re.search(r"--map '(.*)'", errors)[1]
    trials, counted = imported(file, "--map", line)
    assert set(trials["outcome"]) == {"ok"}
    assert counted == {} or case == "confidences"  # whose accuracy does not agree
    assert sorted(trials["action"].unique()) == actions
    assert sorted(trials["reward"].unique()) == rewards


def test_slips_are_counted_and_true_and_false_are_rewards(imported, tmp_path):
    rows = [f"0,{k},1,{'x' if k == 7 else k % 2},{'TRUE' if k % 2 else 'FALSE'}" for k in range(60)]
    rows[9] = "0,9,1,1,"
    trials, counted = imported(write(tmp_path, "f.csv", CASINOS, *rows))
    assert trials["outcome"].value_counts().to_dict() == {"ok": 58, "malformed": 2}
    assert trials["reward"].sum() == 28  # of 30 odd trials, 7 has no answer, 9 no reward
    assert counted == {"'choice' is no answer: one of 0, 1": 1,
                       "'reward' of an answer is empty": 1}  # fmt: skip


def test_a_code_for_no_answer_is_looked_for_among_answers_alone(imported, tmp_path):
    rows = [f"1,{0 if k % 4 == 0 else 1 + k % 2},{0 if k % 4 == 0 else 1}" for k in range(40)]
    file = write(tmp_path, "f.csv", "subjID,choice,outcome", *rows)
    trials, _ = imported(file, "--missing", "0", "--map", "outcome: 0=0,1=1")
    assert trials["outcome"].value_counts().to_dict() == {"ok": 30, "empty": 10}


@pytest.mark.parametrize("made", their_files.MADE[:9])
@pytest.mark.parametrize("n", [1, 3])
def test_an_exact_copy_of_a_row_is_left_out_and_counted(imported, tmp_path, made, n):
    """Half of them stand right behind their row, the others at the end of the file."""
    file = made()
    rows = file.text.rstrip("\n").split("\n")
    cell = ";" if ";" in rows[0] else ","
    plain = [k for k, row in enumerate(rows) if row.count(cell) == rows[0].count(cell)]
    for k in sorted(random.Random(n).sample(plain[2:], n), reverse=True):
        rows.insert(k + 1 if k % 2 else len(rows), rows[k])
    trials, counted = imported(write(tmp_path, file.name, *rows))
    assert len(trials) == len(file.trials)
    assert trials["session"].nunique() == len({trial["session"] for trial in file.trials})
    copies = "an exact copy of a row before it"
    of_copies = {k: v for k, v in counted.items() if "twice in its run" in k or k == copies}
    doubled = len(file.trials) if file.environment == "instrumental_learning" else 0
    assert sum(of_copies.values()) == n + doubled


def test_a_doubled_row_among_casinos_costs_one_row(imported, tmp_path):
    rows = [f"0,{k},{1 + k % 4},{k % 2},1" for k in range(96)]
    trials, counted = imported(write(tmp_path, "f.csv", CASINOS, *rows[:11], rows[10], *rows[11:]))
    assert len(trials) == 96
    assert counted == {"an exact copy of a row before it": 1}
    strange = f"{rows[10][:-1]}0"  # which of the two is the trial?
    trials, counted = imported(write(tmp_path, "f.csv", CASINOS, *rows[:11], strange, *rows[11:]))
    assert len(trials) == 95
    assert counted == {"a trial that stands twice in its run with other cells": 2}


# Sums now against later ones after days, as questionnaires of money choices have them.
PAIRS = [(54, 55, 117), (55, 75, 61), (19, 25.5, 53), (31, 85, 7), (14, 25, 19), (47, 50, 160)]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_list_of_pairs_of_the_users_own_is_an_experiment(imported, knownminds, tmp_path, sign):
    head = "subjID,delay_later,amount_later,delay_sooner,amount_sooner,choice"
    rows = [
        f"{who},{days},{sign * later},0,{sign * sooner},{(k + who) % 2}"
        for who in (1, 2)
        for k, (sooner, later, days) in enumerate(PAIRS)
    ]
    file = write(tmp_path, "dd.txt", head, *rows)
    unit = ("--map", "delay_later: days to months")
    trials, _ = imported(file, *unit, *(("--map", "amount_later: as is") if sign > 0 else ()))
    days = trials["later_delay"] * 365.25 / 12
    shown = zip(sign * trials["sooner_amount"], sign * trials["later_amount"], days, strict=True)
    assert [pytest.approx(pair) for pair in PAIRS * 2] == list(shown)
    assert trials["item"].unique().tolist() == [0 if sign > 0 else 2]
    settings = json.loads(trials["environment_settings"].iloc[0])
    assert settings["design"] == "pairs"
    assert [row[0] for row in settings["pairs"]] == [sign * sooner for sooner, *_ in PAIRS]
    place = TemporalDiscounting(design="pairs", pairs=settings["pairs"], n_repeats=2)
    played = simulate(HyperbolicDiscounter, [[0.1, 0.1, 1.0]], place, seed=1)
    export_trials(played, tmp_path / "told.jsonl")
    told = import_trials([tmp_path / "told.jsonl"])  # in words and back
    shown = ["sooner_amount", "later_amount", "later_delay", "action"]
    assert told.frame[shown].astype(float).equals(played.frame[shown].astype(float))
    own = trials.drop(columns=["environment", "environment_settings", "outcome"])
    own.to_csv(tmp_path / "own.csv", index=False)
    read = import_trials([tmp_path / "own.csv"], environment="temporal_discounting")
    assert read.settings["temporal_discounting"]["pairs"] == settings["pairs"]


@pytest.mark.parametrize(
    ("cell", "unreadable"),
    [
        ("0,0,1,.5,.5,,,1,TRUE", {}),
        ("0,0,1,.5,.5,FALSE,TRUE,1,TRUE", {}),
        ("0,0,1,.5,.5,0,1,1,", {"'reward' of an answer is empty": 1}),
        ("0,0,1,.5,.5,0,1,1,0", {"'reward' of a choice is not what its machine paid": 1}),
    ],
    ids=["empty machines", "words", "empty reward", "another's reward"],
)
def test_only_a_reward_of_another_machine_is_not_what_the_machine_paid(
    cell, unreadable, imported, tmp_path
):
    head = "run,trial,task,mean0,mean1,reward0,reward1,choice,reward"
    rest = [f"0,{t},{t % 4 + 1},.5,.5,0,1,{t % 2},{t % 2}" for t in range(1, 96)]
    trials, counted = imported(write(tmp_path, "engine.csv", head, cell, *rest))
    assert counted == unreadable
    assert (trials["outcome"] == "ok").sum() == 96 - len(unreadable)


HEAD = "environment,subject,session,trial,context,action,reward"


@pytest.mark.parametrize("code", ["-1", "-1.0", ""])
@pytest.mark.parametrize("outcome", ["", ",outcome"])
def test_a_table_in_our_columns_may_have_codes_for_no_answer(imported, tmp_path, code, outcome):
    """Where no column says why answers are missing, they are empty; -1 and -1.0 are one code."""
    given = [",ok", ",empty"] if outcome else ["", ""]
    rows = [f"instrumental_learning,a,0,{t},0,1,1{given[0]}" for t in range(9)]
    rows.append(f"instrumental_learning,a,0,9,0,{code},{given[1]}")
    file = write(tmp_path, "ours.csv", HEAD + outcome, *rows)
    if outcome and not code:  # nothing is to be understood
        trials, counted = import_trials(file).frame, {}
    else:
        trials, counted = imported(file, *(["--missing", "-1"] if code else []))
    assert trials["outcome"].value_counts().to_dict() == {"ok": 9, "empty": 1}
    assert trials["action"].notna().sum() == trials["reward"].sum() == 9
    if code:
        assert counted["'action' holds a code for no answer"] == 1


def test_a_table_in_our_columns_is_checked_by_the_experiment_that_it_names(knownminds, tmp_path):
    rows = [f"instrumental_learning,a,0,{t},0,1,{7 if t == 5 else 1}" for t in range(9)]
    file = write(tmp_path, "ours.csv", HEAD, *rows)
    out = tmp_path / "out.csv"
    code, _, errors = knownminds("import", file, "--out", out)
    assert code == 2
    assert 'row 6 (subject "a", trial 5) has reward 7' in errors
    assert not out.exists()
    good = write(tmp_path, "good.csv", HEAD, *rows[:5])
    code, said, _ = knownminds("import", good)
    assert code == 0
    assert "1 subject, 1 session, 5 trials (5 ok)\nNothing was written" in said


def test_a_saved_mapping_keeps_experiment_and_settings(knownminds, tmp_path):
    table = write(tmp_path, "t.csv", "who,trial,action,reward", *(f"a,{t},1,1" for t in range(40)))
    (tmp_path / "one.toml").write_text("[constants]\ncontext = 0\n")
    told = ["--set", "n_visits=40", "--set", "win_probability=[[0.25,0.75]]"]
    saved, (one, two) = tmp_path / "saved.toml", (tmp_path / f"{n}.csv" for n in "12")
    words = ["--environment", "instrumental_learning", *told, "--save-map", saved, "--out", one]
    mapped = ["--map", tmp_path / "one.toml", "--map", "subject=who"]
    assert knownminds("import", table, *mapped, *words)[0] == 0
    code, said, _ = knownminds("import", table, "--map", saved, "--out", two)
    assert (code, one.read_text()) == (0, two.read_text())
    assert "assumed" not in said
