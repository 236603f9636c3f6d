import asyncio
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knownminds.agents import RandomUtility, play, simulate
from knownminds.environments import (
    Design,
    Diagnosis,
    Message,
    Outcome,
    Trials,
    check_environment,
    session_stream,
)
from knownminds.environments.diagnosis import diagnosis
from knownminds.environments.diagnosis.belief_network import UNTOLD
from knownminds.environments.diagnosis.diagnosis import (
    BELIEF,
    DECISION,
    DEFER,
    ELICITATIONS,
    NO,
    PART,
    QUESTIONS,
    SHARE,
    WITHIN,
    YES,
)
from knownminds.environments.diagnosis.network_files import SHIPPED
from knownminds.environments.streams import session_uniforms
from knownminds.environments.words.labelled_lines import parse_distribution, read_lines
from knownminds.environments.words.told_history import REASONINGS
from knownminds.inference import ModelData
from knownminds.llm_adapters import Synthetic, run_session
from knownminds.validation.costs.dry_runs import dry_run
from knownminds.validation.recovery.parameter_recovery import shuffled

SMALL = {"network": "fever", "n_contexts": 10, "repeats": 2}
STATED = {"question": BELIEF}
DECIDED = {"question": DECISION}


def session(environment, seed=0):
    """All observations of a session."""
    environment.reset(seed=seed)
    table = environment.design.table
    return [
        {"trial": t, **{name: column[t].item() for name, column in table.items()}}
        for t in range(environment.n_trials)
    ]


def shown(environment, observation):
    (message,) = environment.render(observation, []).messages
    assert message.role == "user"
    return message.content


def many(environment, n, seed=0):
    """The design tables of n sessions."""
    return environment.tables(session_uniforms(seed, [(i,) for i in range(n)], environment.n_draws))


# ---------------------------------------------------------------- the design


def test_a_session_asks_everything_about_a_context_in_order_before_the_next():
    environment = Diagnosis(**SMALL)
    asked = pd.DataFrame(session(environment))
    due = [(BELIEF, e, -1) for e in range(4)] + [(DECISION, 0, -1)]
    due += [(SHARE, 0, 0), (SHARE, 0, 1), (WITHIN, 0, 0), (WITHIN, 0, 1)]
    assert environment.n_trials == len(asked) == 10 * 2 * len(due)
    for _, own in asked.groupby(["repetition", "context"], sort=False):
        assert list(zip(own.question, own.elicitation, own.part, strict=True)) == due
        assert np.array_equal(np.diff(own.trial), np.ones(len(due) - 1))
    rounds = [own.context.unique().tolist() for _, own in asked.groupby("repetition")]
    assert sorted(rounds[0]) == sorted(rounds[1]) == list(range(10))
    assert rounds[0] != rounds[1]


def test_what_belongs_to_a_context_is_the_same_wherever_it_is_asked_about():
    asked = pd.DataFrame(session(Diagnosis(**SMALL)))
    fixed = asked.groupby("context")[["state", "idiosyncrasy", "evidence", "marginal"]].nunique()
    assert (fixed == 1).all(axis=None)
    assert asked.groupby("context")["idiosyncrasy"].first().nunique() == 10


def test_every_number_that_is_asked_for_is_that_of_the_network():
    environment = Diagnosis(network="crying", n_contexts=12, repeats=1)
    network = environment.belief_network
    for o in session(environment):
        told = environment.contexts.evidence[o["evidence"]].copy()
        marginal = network.posterior(["colic"], told)[0, 1]
        exact = conditional = marginal
        if o["part"] >= 0:
            exact = network.posterior(["age"], told)[0, o["part"]]
            told[network.position("age")] = o["part"]
            conditional = network.posterior(["colic"], told)[0, 1]
        exact = conditional if o["question"] == WITHIN else exact
        found = [o[name] for name in ("posterior", "marginal", "conditional")]
        assert found == pytest.approx([exact, marginal, conditional], abs=1e-12)


@pytest.mark.parametrize("network", SHIPPED)
def test_posteriors_spread_evenly_and_states_have_them_as_frequencies(network):
    environment = Diagnosis(network, repeats=1, questions=["decision"])
    tables = many(environment, 60)
    p, state = tables["posterior"], tables["state"]
    bins = np.minimum((p * 20).astype(int), 19)
    counts = np.array([np.bincount(own, minlength=20) for own in bins])
    assert (counts == counts[0]).all()
    reached = counts[0][counts[0] > 0]
    assert len(reached) >= 19
    assert reached.max() - reached.min() <= 1
    distinct = [len(set(own)) for own in tables["evidence"].tolist()]
    assert min(distinct) >= 199  # a bin with few contexts may bring one twice
    for k in range(20):
        own = bins == k
        off, variance = (state - p)[own].sum(), (p * (1 - p))[own].sum()
        assert abs(off) <= 4 * np.sqrt(variance)  # four standard errors, twenty times four
    # The control: with the states of other sessions the bins do not show.
    mixed = session_stream(0).permutation(state.ravel()).reshape(state.shape)
    low = bins < 4
    assert mixed[low].mean() - p[low].mean() > 4 * np.sqrt(0.25 / low.sum())


def test_the_number_of_a_context_says_nothing_of_its_posterior_nor_does_the_idiosyncrasy():
    tables = many(Diagnosis("fever", repeats=1, questions=["decision"]), 100)
    p = tables["posterior"].ravel()
    for name in ("context", "idiosyncrasy"):
        r = np.corrcoef(tables[name].ravel(), p)[0, 1]
        assert abs(r) < 4 / np.sqrt(len(p))
    z = tables["idiosyncrasy"].ravel()
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    assert abs(z.var() - 1) < 4 * np.sqrt(2 / len(z))


def test_the_paper_s_design_is_the_default():
    environment = Diagnosis()
    assert (environment.n_contexts, environment.repeats, environment.bins) == (200, 5, 20)
    assert environment.elicitations == ELICITATIONS == ("plain", "squared", "absolute", "bayesian")
    # Four beliefs, a decision, and three parts, in one question, with what is believed within each.
    assert environment.n_trials == 200 * 5 * (4 + 1 + 6)
    assert environment.replies.n_prompts == 200 * 5 * (4 + 1 + 1 + 3)
    assert environment.given == "either"


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({"questions": ["decision"]}, {(DECISION, 0)}),
        ({"questions": "belief", "elicitations": ["squared"]}, {(BELIEF, 1)}),
        ({"questions": ["expectation"]}, {(SHARE, 0), (WITHIN, 0)}),
        ({"questions": ["expectation"], "parts": "separate"}, {(PART, 0), (WITHIN, 0)}),
        (
            {"questions": ["decision", "belief"], "elicitations": ["bayesian", "plain"]},
            {(BELIEF, 0), (BELIEF, 3), (DECISION, 0)},
        ),
    ],
)
def test_the_settings_choose_what_is_asked(settings, asked):
    environment = Diagnosis(**{**SMALL, **settings})
    assert {(o["question"], o["elicitation"]) for o in session(environment)} == asked
    check_environment(environment)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"network": "hart"}, "Nearest: heart"),
        ({"target": "fevre"}, "no node named 'fevre'"),
        ({"auxiliary": "agee"}, "no node named 'agee'"),
        ({"target": "age"}, "age has newborn, infant, toddler"),
        ({"n_contexts": 0}, "n_contexts is a whole number from 1 on; got 0"),
        ({"repeats": 1.5}, "repeats is a whole number"),
        ({"bins": True}, "bins is a whole number"),
        ({"questions": ["beliefs"]}, "questions are one or more of belief, decision"),
        ({"elicitations": ["plain", "plain"]}, "each once"),
        ({"elicitations": []}, "one or more"),
        ({"reasoning": "deep"}, "reasoning is one of"),
        ({"parts": "one"}, "parts is one of distribution, separate; got 'one'"),
        ({"edges": [["a", "b", "c"]]}, "pairs of parent and child"),
    ],
)
def test_bad_settings_are_told(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        Diagnosis(**{**SMALL, **settings})


# ---------------------------------------------------------------- words


@pytest.mark.parametrize("network", SHIPPED)
def test_a_diagnosis_keeps_the_contract(network):  # reasoning is varied in test_environment.py
    check_environment(Diagnosis(network, n_contexts=4, repeats=2), 3)
    check_environment(Diagnosis(network, n_contexts=1, repeats=1), 3)


def test_a_prompt_tells_the_evidence_and_nothing_else_of_the_case():
    environment = Diagnosis("heart", n_contexts=15, repeats=1)
    network, says = environment.belief_network, environment._about.says
    for o in session(environment):
        text = shown(environment, o)
        told = environment.contexts.evidence[o["evidence"]]
        facts = text.split("Consider a patient who ")[1].split(".\n")[0]
        due = [
            says[node.name][state]
            for node, state in zip(network.nodes, told, strict=True)
            if state != UNTOLD
        ]
        assert facts == f"{', '.join(due[:-1])} and {due[-1]}"
        # The exact probability, to any number of digits, stands nowhere.
        assert not re.search(r"0\.\d{2,}", text)
        assert ("lose" in text) == (o["elicitation"] in (1, 2))
        assert ("Bayes" in text) == (o["elicitation"] == 3)
        assert ("Can decide" in text) == (o["question"] == DECISION)


def test_what_is_hidden_changes_no_word():
    environment = Diagnosis(**SMALL)
    for o in session(environment)[:9]:
        other = {**o, "state": 1 - o["state"], "posterior": 0.5, "idiosyncrasy": 9.0}
        other |= {"marginal": 0.1, "conditional": 0.9}
        assert shown(environment, other) == shown(environment, o)


def test_every_question_of_a_session_has_words_of_its_own_and_is_read_back():
    environment = Diagnosis(**SMALL)
    asked = session(environment)
    texts = [shown(environment, o) for o in asked]
    assert len(set(texts)) == environment.replies.n_prompts == len(texts) - 20
    for o, text in zip(asked, texts, strict=True):
        first = asked[o["trial"] - o["part"]] if o["question"] == SHARE else o
        assert environment.read([Message("user", text)]) == ([], first)


def test_a_prompt_of_another_session_is_not_read_as_one_of_this():
    environment = Diagnosis(**SMALL)
    text = shown(environment, session(environment, 1)[0])
    environment.reset(seed=0)
    for messages in ([Message("user", text)], [], [Message("user", "Case 99.")]):
        with pytest.raises(ValueError, match="about a case of this session"):
            environment.read(messages)


@pytest.mark.parametrize("p", [0.0, 1.0, 0.07, 1 / 3, 1e-9, 0.29])
def test_any_probability_can_be_said_and_read(p):
    for reasoning in REASONINGS:
        environment = Diagnosis(**SMALL, reasoning=reasoning)
        answer = environment.parse(environment.say(p, STATED), STATED)
        assert (answer.outcome, answer.response, answer.action) == (Outcome.OK, p, None)


@pytest.mark.parametrize(
    ("text", "response"),
    [
        ("No: 0.30\nYes: 0.70", 0.7),
        ("  no: 0.3\n**Yes**: .7\n", 0.7),
        ("Yes: 0.7\nNo: 0.3", 0.7),
        ("- No: 0.3\n- Yes: 0.7", 0.7),
        ("No: 0.33\nYes: 0.66", 0.66),
    ],
)
def test_a_stated_probability_is_that_behind_yes(text, response):
    assert Diagnosis(**SMALL).parse(text, STATED).response == response


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("No: 0.3\nYes: 0.6", "sum to 0.9, not to 1"),
        ("No: 0.7\nYes: 0.7", "sum to 1.4, not to 1"),
        ("Yes: 0.7", 'no line begins with "No:"'),
        ("No: 0.3", 'no line begins with "Yes:"'),
        ("No: 0.3\nYes: 0.7\nYes: 0.7", '2 lines begin with "Yes:"'),
        ("No: 0.3%\nYes: 99.7%", "No: expected a number from 0 to 1, or a percentage"),
        ("No: 30\nYes: 70", "No: expected a number from 0 to 1"),
        ("No: -0.3\nYes: 1.3", "expected a number from 0 to 1"),
        ("No:\nYes: 1", "No: no text"),
        ("No: 0.3\nYes: 0.7\nI am sure.", "no others"),
        ("0.7", "no line begins"),
        ("No: 0.3-0.4\nYes: 0.6-0.7", "expected one number"),
    ],
)
def test_what_is_no_distribution_is_malformed(text, note):
    answer = Diagnosis(**SMALL).parse(text, STATED)
    assert (answer.outcome, answer.response, answer.text) == (Outcome.MALFORMED, None, text)
    assert note in answer.note


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Can decide: Yes\nDecision: Yes", YES),
        ("Can decide: Yes\nDecision: No", NO),
        ("Can decide: No\nDecision: Yes", DEFER),
        ("can decide: no.\ndecision: no.", DEFER),
    ],
)
def test_two_steps_make_a_decision(text, action):
    answer = Diagnosis(**SMALL).parse(text, DECIDED)
    assert (answer.action, answer.response) == (action, None)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("Decision: Yes", 'no line begins with "Can decide:"'),
        ("Can decide: No", 'no line begins with "Decision:"'),
        ("Can decide: No\nCan decide: Yes\nDecision: Yes", '2 lines begin with "Can decide:"'),
        ("Can decide: maybe\nDecision: Yes", "Can decide: expected one of Yes, No"),
        ("Can decide: Yes\nDecision: Defer", "Decision: expected one of Yes, No"),
        ("Yes", "no line begins"),
    ],
)
def test_what_is_no_decision_is_malformed(text, note):
    answer = Diagnosis(**SMALL).parse(text, DECIDED)
    assert (answer.outcome, answer.action, answer.text) == (Outcome.MALFORMED, None, text)
    assert note in answer.note


def test_thoughts_may_come_before_the_lines_where_they_are_asked_for():
    thinking = Diagnosis(**SMALL, reasoning="chain_of_thought")
    text = "The rash speaks for it.\nAll in all:\n\nNo: 0.2\nYes: 0.8"
    answer = thinking.parse(text, STATED)
    assert (answer.outcome, answer.response) == (Outcome.OK, 0.8)
    assert Diagnosis(**SMALL).parse(text, STATED).outcome is Outcome.MALFORMED
    after = thinking.parse(text + "\nI hope this helps.", STATED)
    assert (after.outcome, after.response) == (Outcome.REPAIRED, 0.8)
    assert thinking.parse("Yes: 0.5, say.\n" + text, STATED).outcome is Outcome.MALFORMED
    assert thinking.parse("I can't help with diagnoses.", STATED).outcome is Outcome.REFUSED
    assert thinking.parse(" ", DECIDED).outcome is Outcome.EMPTY


def test_a_distribution_over_more_states_is_read_by_its_labels():
    labels = ["young", "middle", "old"]
    text = "young: 0.2\nmiddle: 0.3\nold: 0.5"
    assert parse_distribution(text, labels, "middle").response == 0.3
    assert parse_distribution(text, labels[:2], "middle").outcome is Outcome.MALFORMED
    assert read_lines(text, labels) == (["0.2", "0.3", "0.5"], [])


# ---------------------------------------------------------------- trials from elsewhere


def rows(n_contexts=3):
    """A data file without what only a known mind has, with names for questions."""
    environment = Diagnosis("fever", n_contexts=n_contexts, repeats=1)
    frame = pd.DataFrame(session(environment))
    acts = frame["question"] == DECISION
    frame["action"] = pd.array(np.where(acts, DEFER, 0), dtype="Int64")
    frame.loc[~acts, "action"] = pd.NA
    frame["response"] = frame["posterior"].round(2).where(~acts)
    frame["question"] = [QUESTIONS[q] for q in frame["question"]]
    frame["elicitation"] = [ELICITATIONS[e] for e in frame["elicitation"]]
    drop = ["idiosyncrasy", "evidence", "repetition", "marginal", "conditional"]
    return environment, frame.assign(subject="s").drop(columns=drop)


def test_a_file_may_name_its_questions_and_lack_what_follows():
    environment, frame = rows()
    played = pd.DataFrame(session(environment))
    trials = Trials.from_frame(frame, environment=environment)
    for name in ("question", "elicitation", "repetition", "marginal", "conditional"):
        assert np.allclose(trials.frame[name].astype(float), played[name].astype(float)), name
    assert (trials.frame["idiosyncrasy"] == 0).all()
    score = environment.performance(trials)
    assert np.isnan(score[trials.frame["question"] == DECISION]).all()
    assert (np.nan_to_num(score, nan=1.0) >= 0.995 - 1e-12).all()
    assert Diagnosis.as_played(trials.frame).n_contexts == 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"question": "belief?"}, "names one of belief, decision, part, within"),
        ({"elicitation": "plan"}, "names one of plain"),
        ({"state": 2}, "'state' of diagnosis is 0 without"),
        ({"posterior": 1.2}, "'posterior' of diagnosis is a probability"),
        ({"part": 1}, "'part' of diagnosis is from 0"),
        ({"response": 1.01}, "Responses of diagnosis go from 0 to 1"),
        ({"action": 1}, "asks for a number"),
    ],
)
def test_a_row_that_no_diagnosis_can_have_brought_is_named(change, sentence):
    environment, frame = rows()
    for name, value in change.items():
        frame.loc[0, name] = value
    with pytest.raises(ValueError, match=sentence):
        Trials.from_frame(frame, environment=environment)


def test_a_state_that_changes_between_answers_is_refused():
    environment, frame = rows()
    frame.loc[1, "state"] = 1 - frame.loc[1, "state"]
    with pytest.raises(ValueError, match="the same wherever a context is asked about"):
        Trials.from_frame(frame, environment=environment)


def test_what_a_trial_does_not_ask_for_is_refused():
    environment, frame = rows()
    at = int(np.flatnonzero(frame["question"] == "decision")[0])
    frame.loc[at, "response"] = 0.5
    with pytest.raises(ValueError, match="asks for an action"):
        Trials.from_frame(frame, environment=environment)


# ---------------------------------------------------------------- networks from files

BIF = """
variable smoke { type discrete [ 2 ] { no, yes }; }
variable cancer { type discrete [ 2 ] { yes, no }; }
variable xray { type discrete [ 2 ] { clear, shadow }; }
probability ( smoke ) { table 0.6, 0.4; }
probability ( cancer | smoke ) { (no) 0.1, 0.9; (yes) 0.6, 0.4; }
probability ( xray | cancer ) { (yes) 0.2, 0.8; (no) 0.9, 0.1; }
"""


def test_a_network_from_a_file_is_asked_about_in_its_own_names(tmp_path):
    path = tmp_path / "lungs.bif"
    path.write_text(BIF, encoding="utf-8")
    environment = Diagnosis(str(path), target="cancer", n_contexts=4, repeats=2)
    check_environment(environment)
    asked = session(environment)
    text = shown(environment, asked[0])
    assert re.search(r"person who has xray = (clear|shadow)\.", text)
    assert "have cancer = yes" in text
    # "yes" is the condition, wherever it stands among the states.
    with_shadow = 0.8 * (0.6 * 0.1 + 0.4 * 0.6) / (0.8 * 0.3 + 0.1 * 0.7)
    found = {round(o["posterior"], 9) for o in asked if o["question"] == BELIEF}
    assert round(with_shadow, 9) in found
    assert Diagnosis(**environment.settings).settings == environment.settings


def test_a_table_of_cases_becomes_an_experiment(tmp_path):
    rng = np.random.default_rng(0)
    ill = rng.random(4000) < 0.4
    signs = {
        f"s{k}": np.where(rng.random(4000) < np.where(ill, 0.8, 0.3), "yes", "no") for k in range(4)
    }
    frame = pd.DataFrame({"ill": np.where(ill, "yes", "no"), **signs})
    path = tmp_path / "cases.csv"
    frame.to_csv(path, index=False)
    check_environment(Diagnosis(str(path), target="ill", n_contexts=5, repeats=1))
    edges = [["s0", "s1"], ["ill", "s0"], ["ill", "s1"]]
    check_environment(Diagnosis(str(path), target="ill", edges=edges, n_contexts=5, repeats=1))
    with pytest.raises(ValueError, match=r"s0 in cases.csv has \d+ where ill=yes"):
        Diagnosis(str(path), target="ill", minimum_support=2000)


def test_networks_of_ones_own_are_set_on_the_command_line(tmp_path, capsys):
    from knownminds.validation.cli import main

    def told(path, *more):
        settings = [f"network={path}", "target=cancer", "n_contexts=2", "repeats=1", *more]
        words = [word for setting in settings for word in ("--set", setting)]
        with pytest.raises(SystemExit) as end:
            main(["simulate", "diagnosis", "--model", "random_utility", "--subjects", "1", *words])
        out, err = capsys.readouterr()
        return end.value.code or 0, out, " ".join(err.split())

    good, cyclic, crooked = (tmp_path / name for name in ("lungs.bif", "cycle.bif", "sum.bif"))
    good.write_text(BIF, encoding="utf-8")
    cycle = "( smoke | xray ) { (clear) 0.6, 0.4; (shadow) 0.6, 0.4;"
    cyclic.write_text(BIF.replace("( smoke ) { table 0.6, 0.4;", cycle), encoding="utf-8")
    crooked.write_text(BIF.replace("(no) 0.1, 0.9", "(no) 0.1, 0.8"), encoding="utf-8")
    code, out, _ = told(good)
    assert code == 0
    assert out.count("\n") == 1 + 2 * 9  # four beliefs, a decision, twice two parts; a head
    for path, sentence in (
        (cyclic, "Nodes of a network form no cycle"),
        (crooked, "sum to 1; cancer given smoke=no has 0.1, 0.8"),
        (tmp_path / "none.bif", "none.bif"),
    ):
        code, out, err = told(path)
        assert (code != 0, out) == (True, "")
        assert sentence in err
        assert "Traceback" not in err
    cases = tmp_path / "cases.csv"
    cases.write_text("cancer,smoke,xray\n" + "yes,no,clear\nno,yes,shadow\n" * 150 +
                     "yes,yes,clear\nno,no,shadow\n" * 60, encoding="utf-8")  # fmt: skip
    assert told(cases)[0] == 0
    code, _, err = told(cases, "minimum_support=300")
    assert code != 0
    assert re.search(r"smoke in cases.csv has 210 where cancer=no", err)


def test_a_state_of_the_auxiliary_that_is_never_possible_is_told(tmp_path):
    path = tmp_path / "lungs.bif"
    path.write_text(BIF.replace("table 0.6, 0.4", "table 1, 0"), encoding="utf-8")
    environment = Diagnosis(str(path), target="cancer", n_contexts=4)
    with pytest.raises(ValueError, match=r"impossible in every context\. Choose another auxiliary"):
        environment.reset(seed=0)


def test_words_of_ones_own_must_ask_for_what_is_read(tmp_path):
    shipped = Diagnosis(**SMALL)
    text = Path(diagnosis.__file__).with_suffix(".toml").read_text(encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(text.replace("Consider a", "There is a"), encoding="utf-8")
    other = Diagnosis(**SMALL, templates=str(own))
    o = session(other)[0]
    assert "There is a child who" in shown(other, o)
    own.write_text(text.replace("Can decide: WORD\n", ""), encoding="utf-8")
    with pytest.raises(ValueError, match="asks for the line 'Can decide'"):
        Diagnosis(**SMALL, templates=str(own))
    assert isinstance(shipped.draw(session_stream(0)), Design)


# ---------------------------------------------------------------- trials that ask for either


MIND = {"u_yes_1": 4.0, "u_yes_0": -4.0, "u_defer_1": 0.5, "u_defer_0": 0.5}
MIND |= {"c": 0.2, "d": 0.8, "s_between": 0.3, "s_report": 0.2}


def test_a_known_mind_behind_an_endpoint_lives_the_session_that_play_lives():
    environment = Diagnosis(**{**SMALL, "n_contexts": 3})
    mind = RandomUtility(**MIND, lapse=0.2)
    spoken = asyncio.run(run_session(Synthetic(mind, environment, 11, 3), environment, 11, 3, 5))
    played = play(mind, environment, 11, 3, 5).frame
    pd.testing.assert_frame_equal(spoken.frame[played.columns], played, check_exact=True)
    assert set(spoken.frame["outcome"]) == {"ok"}
    acts = played["question"] == DECISION
    assert (played["action"].notna() == acts).all()
    assert (played["response"].isna() == acts).all()


def test_a_dry_run_and_the_gymnasium_wrapper_take_either():
    environment = Diagnosis(**{**SMALL, "n_contexts": 2})
    assert len(dry_run(RandomUtility(**MIND), environment, 3, 0).prompt_bytes) == 2 * 2 * 8
    gymnasium = pytest.importorskip("gymnasium")
    from knownminds.environments.formats.gymnasium_wrapper import GymnasiumEnvironment

    wrapped = GymnasiumEnvironment(environment)
    shown, _ = wrapped.reset(seed=1)
    assert isinstance(wrapped.action_space, gymnasium.spaces.Tuple)
    steps, over = 0, False
    while not over:
        assert wrapped.observation_space.contains(shown)
        choice = (DEFER, np.float64(0.25))
        assert wrapped.action_space.contains((np.int64(DEFER), np.array(0.25)))
        shown, _, over, _, _ = wrapped.step(choice)
        steps += 1
    assert steps == environment.n_trials


def test_a_step_takes_what_its_trial_asks_for_and_nothing_else():
    environment = Diagnosis(**SMALL)
    first, _ = environment.reset(seed=0)
    assert environment.asks(first) == "response"
    for wrong in (1.5, -0.1, (0, 0.5)):
        with pytest.raises(ValueError, match="Responses of diagnosis are numbers from 0 to 1"):
            environment.step(wrong)
    while environment.asks(first) == "response":
        first, *_ = environment.step(0.5)
    for wrong in (0.5, 3, -1):
        with pytest.raises(ValueError, match="Actions of diagnosis are whole numbers from 0 to 2"):
            environment.step(wrong)


def test_a_shuffle_keeps_decisions_among_decisions():
    environment = Diagnosis(**SMALL)
    theta = np.array([list(MIND.values())])
    trials = simulate(RandomUtility, theta, environment, 1)
    mixed = shuffled(trials).frame
    Trials.from_frame(mixed, environment=environment)  # refuses what was not asked for
    acts = mixed["question"] == DECISION
    assert sorted(mixed["action"][acts]) == sorted(trials.frame["action"][acts])
    assert mixed["action"][acts].tolist() != trials.frame["action"][acts].tolist()


def test_data_of_a_model_hold_every_answer_and_count_them_once():
    environment = Diagnosis(**SMALL)
    trials = simulate(RandomUtility, np.array([list(MIND.values())] * 2), environment, 1)
    data = ModelData.read(RandomUtility, trials)
    assert data.n_trials.tolist() == [environment.n_trials] * 2
    assert data.answered.all()
    frame = trials.to_frame()
    at = [4, 5]  # a decision and a number go missing
    frame.loc[at, ["action", "response"]] = None
    frame.loc[at, "outcome"] = "malformed"
    holed = ModelData.read(RandomUtility, Trials.from_frame(frame))
    assert holed.n_trials.tolist() == [environment.n_trials - 2, environment.n_trials]
    assert (~holed.answered).sum() == 2


# ---------------------------------------------------------------- one reply for a distribution


def shares(environment, seed=0):
    """The trials of the first distribution of a session."""
    first = next(o for o in session(environment, seed) if o["question"] == SHARE)
    return environment.replies.together(first)


@pytest.mark.parametrize("network", SHIPPED)
def test_a_distribution_is_one_question_whose_reply_answers_a_trial_for_each_state(network):
    environment = Diagnosis(network, n_contexts=2, repeats=1)
    asked = shares(environment)
    assert [o["part"] for o in asked] == list(range(environment.n_parts))
    assert sum(o["posterior"] for o in asked) == pytest.approx(1.0, abs=1e-9)
    (text,) = {shown(environment, o) for o in asked}
    states = environment._about.says[environment._about.auxiliary]
    lines = text.splitlines()
    assert [line[3:-1] for line in lines if re.match(r"[A-Z]\. ", line)] == [
        f"This {environment._about.person} {state}" for state in states
    ]
    assert [line for line in lines if line.endswith(": NUMBER")] == [
        f"{'ABCDEF'[k]}: NUMBER" for k in range(len(states))
    ]
    numbers = (0.5, *[0.5 / (len(states) - 1)] * (len(states) - 1))
    said = environment.say(numbers, asked[0])
    assert [environment.parse(said, o).response for o in asked] == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("text", "outcome", "note"),
    [
        ("A: 0.2\nB: 0.3\nC: 0.5", Outcome.OK, ""),
        ("A: 0.33\nB: 0.33\nC: 0.33", Outcome.REPAIRED, "probabilities sum to 0.99"),
        ("**A**: 0.2\nb: 0.3\nC: 0.5", Outcome.REPAIRED, "letter case"),
        ("A: 0.3\nB: 0.3\nC: 0.3", Outcome.MALFORMED, "sum to 0.9, not to 1"),
        ("A: 0.65\nB: 0.65\nC: 0", Outcome.MALFORMED, "sum to 1.3, not to 1"),
        ("A: 0.5\nB: 0.5", Outcome.MALFORMED, 'no line begins with "C:"'),
        ("A: 20\nB: 30\nC: 50", Outcome.MALFORMED, "expected a number from 0 to 1"),
        ("No: 0.3\nYes: 0.7", Outcome.MALFORMED, 'no line begins with "A:"'),
        ("I can't help with that.", Outcome.REFUSED, 'no line begins with "A:"'),
        ("", Outcome.EMPTY, "no text"),
    ],
)
def test_a_reply_that_is_no_distribution_counts_for_every_state(text, outcome, note):
    environment = Diagnosis("heart", n_contexts=2, repeats=1)
    answers = [environment.parse(text, o) for o in shares(environment)]
    assert {answer.outcome for answer in answers} == {outcome}
    assert all(note in answer.note and answer.text == text for answer in answers)
    readable = outcome in (Outcome.OK, Outcome.REPAIRED)
    assert {answer.response is None for answer in answers} == {not readable}


def test_a_sum_may_miss_1_by_what_rounding_to_two_decimals_can_and_no_more():
    environment = Diagnosis("diabetes", n_contexts=2, repeats=1)  # four states: .02
    asked = shares(environment)
    for last, readable in ((0.25, True), (0.27, True), (0.23, True), (0.28, False), (0.22, False)):
        text = f"A: 0.25\nB: 0.25\nC: 0.25\nD: {last}"
        answers = [environment.parse(text, o) for o in asked]
        assert {answer.response is not None for answer in answers} == {readable}
        if readable:  # nothing is normalised, and what is off is told
            assert [answer.response for answer in answers] == [0.25, 0.25, 0.25, last]
            assert ("sum to" in answers[0].note) == (last != 0.25)


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(
            st.tuples(st.sampled_from("ABCab*"), st.floats(-0.2, 1.2).map(lambda x: round(x, 2))),
            max_size=4,
        ).map(lambda pairs: "\n".join(f"{label}: {number}" for label, number in pairs)),
    )
)
def test_any_reply_answers_all_states_of_a_distribution_or_none(text):
    answers = [FUZZED.parse(text, {"question": SHARE, "part": part}) for part in range(3)]
    assert len({(answer.outcome, answer.note, answer.text) for answer in answers}) == 1
    told = [answer.response for answer in answers if answer.response is not None]
    assert len(told) == (3 if answers[0].outcome in (Outcome.OK, Outcome.REPAIRED) else 0)
    assert not told or abs(sum(told) - 1) <= 0.015 + 1e-9


FUZZED = Diagnosis("heart", n_contexts=2, repeats=1)


def test_a_distribution_is_said_with_a_number_for_each_state():
    environment = Diagnosis("heart", n_contexts=2, repeats=1)
    for wrong in (0.5, (0.5, 0.5)):
        with pytest.raises(ValueError, match="a number for each of 3 states"):
            environment.say(wrong, shares(environment)[0])


class Wordy:
    """Answers every question about several states with these lines, others as a known mind."""

    def __init__(self, inner, reply):
        self.inner, self.reply = inner, reply
        self.provider, self.model = inner.provider, inner.model
        self.base_url, self.capabilities = inner.base_url, inner.capabilities
        self.asked = 0

    async def complete(self, prompt, *, settings):
        self.asked += 1
        reply = await self.inner.complete(prompt, settings=settings)
        several = "A: NUMBER" in prompt.messages[-1].content
        return replace(reply, text=self.reply) if several else reply


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [("A: .65\nB: .65", "malformed"), ("A: .65\nB: .35", "ok"), ("A: .5\nB: .49", "repaired")],
)
def test_a_session_asks_once_and_has_a_row_for_each_state(reply, outcome):
    environment = Diagnosis(**{**SMALL, "n_contexts": 3})
    chair = Wordy(Synthetic(RandomUtility(**MIND), environment, 11, 3), reply)
    lived = asyncio.run(run_session(chair, environment, 11, 3, 5)).frame
    assert chair.asked == environment.replies.n_prompts == 3 * 2 * 8
    assert len(lived) == environment.n_trials == 3 * 2 * 9
    of_shares = lived[lived["question"] == SHARE]
    assert set(of_shares["outcome"]) == {outcome}
    assert set(of_shares["raw_text"]) == {reply}
    first = of_shares["part"] == 0
    # What was sent and received stands with the first state alone.
    assert of_shares["input_tokens"].notna().tolist() == first.tolist()
    assert lived.loc[lived["question"] != SHARE, "input_tokens"].notna().all()
    told = of_shares.groupby(["context", "repetition"])["response"].sum(min_count=2)
    due = {"malformed": np.nan, "ok": 1.0, "repaired": 0.99}[outcome]
    assert np.allclose(told, due, equal_nan=True)


def test_trials_tell_how_parts_were_asked_for():
    for parts in ("distribution", "separate"):
        environment = Diagnosis("fever", n_contexts=3, repeats=1, parts=parts)
        frame = pd.DataFrame(session(environment))
        assert Diagnosis.as_played(frame).parts == parts
        named = frame.assign(question=[QUESTIONS[q] for q in frame["question"]])
        assert Diagnosis.as_played(named).parts == parts
        assert Diagnosis(**environment.settings).parts == parts


def test_separate_questions_are_asked_one_by_one_and_may_sum_to_anything():
    environment = Diagnosis(**{**SMALL, "parts": "separate"})
    check_environment(environment)
    assert environment.replies.n_prompts == environment.n_trials
    asked = [o for o in session(environment) if o["question"] == PART][:2]
    assert [environment.parse("No: .35\nYes: .65", o).response for o in asked] == [0.65, 0.65]
    assert len({shown(environment, o) for o in asked}) == 2
