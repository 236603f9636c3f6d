"""What nobody is told: planted peeks and leaks are found, and shipped ones have none."""

import json
from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest
from referee.test_referee import HEAD, PLANTS

from knownminds import audit
from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make
from knownminds.environments.bandits.horizon import Horizon
from knownminds.environments.bandits.instrumental_learning import InstrumentalLearning
from knownminds.environments.bandits.probabilistic_reasoning import ProbabilisticReasoning
from knownminds.environments.fields import Field, Fields
from knownminds.validation.referee.judged import model_of
from knownminds.validation.referee.truth import leaks_of, peeks_of

PEEKERS = {
    "foreseeing": ("instrumental_learning", "reward", PLANTS["foreseeing"]),
    "all_knowing": ("horizon", "true_mean_0, true_mean_1", """
        class AllKnowing(Model):
            \"\"\"A player that knows the means, which nobody is told.\"\"\"
            beta = positive("inverse temperature", mean=0.0, sd=0.7)
            def respond(self, trial):
                return self.beta * np.array([trial.true_mean_0, trial.true_mean_1]) / 20
        """),
    "sees_the_urn": ("probabilistic_reasoning", "urn", """
        from knownminds.agents.compiler.definition import LogitNormal
        class SeesTheUrn(Model):
            \"\"\"A judge that knows a little of the urn.\"\"\"
            sees = unit("what it knows", mean=-2.0, sd=0.5)
            def respond(self, trial):
                return LogitNormal(trial.prior + 0.001 * self.sees * trial.urn, 0.1)
        """),
    "told_afterwards": ("restless_bandit", "mean_0, mean_1", """
        class ToldAfterwards(Model):
            \"\"\"A chooser, without confidence, that is told both means after its choice.\"\"\"
            beta = positive("inverse temperature", mean=-1.0, sd=0.7)
            def begin(self):
                self.values = np.zeros(2)
            def respond(self, trial):
                return self.beta * self.values
            def update(self, trial):
                self.values = np.array([trial.mean_0, trial.mean_1]) / 20
        """),
}  # fmt: skip


def leaky(kind, tell):
    """Return an experiment whose prompts have one more sentence, `tell` of its tables by trial."""

    class Leaky(kind):
        fields = Fields(*kind.fields, Field("leak", role="wording"))

        def tables(self, uniforms):
            tables = dict(super().tables(uniforms))
            return tables | {"leak": np.asarray(tell(self, tables), dtype=float)}

        def render(self, labels, observation, turns):
            prompt = super().render(labels, observation, turns)
            last = prompt.messages[-1]
            text = self.sentence(observation["leak"]) + last.content
            return replace(prompt, messages=(*prompt.messages[:-1], replace(last, content=text)))

    return Leaky


LEAKS = {
    "the reward to come, in words": (
        InstrumentalLearning, lambda e, t: t["payoffs"][..., 0], "words tell payoffs 0",
        lambda x: "Today is a good day. " if x > 0.5 else "Today is a bad day. ",
    ),
    "a true mean, as a number": (
        Horizon, lambda e, t: t["true_mean_1"], "tells true_mean_1", "It has {:.0f}. ".format,
    ),
    "the right answer in percent": (
        ProbabilisticReasoning, lambda e, t: e.right(t), "tells the right answer",
        lambda x: f"(solution: {100 * x:.0f}%) ",
    ),
    "the mean of what an action pays in this casino": (
        InstrumentalLearning, lambda e, t: means(t), "tells payoffs 1", "It pays {:.2f}. ".format,
    ),
}  # fmt: skip


def means(tables):
    """Return the mean payoff of the second action in the session and casino of each trial."""
    paid, where = tables["payoffs"][..., 1], tables["context"]
    whole = np.zeros(paid.shape)
    for k in np.unique(where):
        here = where == k
        mean = (paid * here).sum(axis=1) / here.sum(axis=1)
        whole += here * np.round(mean, 1)[:, None]
    return whole


@pytest.mark.parametrize("name", LEAKS)
def test_a_planted_leak_of_prompts_is_found(name):
    kind, tell, sentence, say = LEAKS[name]
    planted = leaky(kind, tell)
    planted.sentence = staticmethod(say)
    more = {"n_problems": 20} if kind is ProbabilisticReasoning else {}
    assert any(sentence in one for one in leaks_of(planted(**more)))
    # The same sentence of another session's numbers tells nothing.
    other = leaky(kind, lambda e, t: np.roll(tell(e, t), 7, axis=1)[:, ::-1])
    other.sentence = staticmethod(say)
    assert not any("payoffs" in one or "right" in one for one in leaks_of(other(**more)))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (k > 0)) for k, n in enumerate(PEEKERS)]
)
def test_a_model_that_goes_by_what_nobody_is_told_peeks(name, tmp_path, knownminds):
    place, secret, text = PEEKERS[name]
    (tmp_path / f"{name}.py").write_text(HEAD + dedent(text))
    words = ("--environment", place, "--workers", 1, "--json")
    try:
        code, out, err = knownminds("referee", tmp_path / f"{name}.py", *words)
        assert code == 0, err
        assert json.loads(out)["verdicts"]["truth"]["verdict"] == "peeks"
        assert secret in json.loads(out)["verdicts"]["truth"]["reasons"][0]
        code, out, err = knownminds("referee", tmp_path, *words, "--against", "random_responder")
        assert code == 0, err
        told = json.loads(out)["verdicts"][f"{name}.py"]
        assert (told["verdict"], secret in told["reasons"][0]) == ("peeks", True)
    finally:
        AGENTS.pop(name, None)


def test_what_is_the_same_in_a_whole_session_is_replaced_by_that_of_another(tmp_path):
    _, secret, text = PEEKERS["all_knowing"]
    file = tmp_path / "knows_one_game.py"
    file.write_text(HEAD + dedent(text).replace("AllKnowing", "KnowsOneGame"))
    try:
        assert ", ".join(peeks_of(model_of(str(file)), make("horizon", n_games=1))) == secret
    finally:
        AGENTS.pop("knows_one_game", None)


def test_of_shipped_deciders_the_outcome_peeker_alone_peeks():
    place = make("diagnosis", n_contexts=4, repeats=1)
    deciders = [name for name, model in AGENTS.items() if model.plays(place)]
    peeks = {name: peeks_of(AGENTS[name], place) for name in deciders}
    assert {name: told for name, told in peeks.items() if told} == {"outcome_peeker": ["state"]}


@pytest.mark.long
def test_no_other_shipped_model_peeks_and_no_shipped_prompt_leaks():
    pairs = 0
    for name in ENVIRONMENTS:
        place = make(name)
        assert [leaks_of(place, seed) for seed in range(3)] == [[]] * 3, name
        for model in (one for one in AGENTS.values() if one.plays(place)):
            pairs += 1
            expected = ["state"] if model.name == "outcome_peeker" else []
            assert peeks_of(model, place) == expected, (name, model.name)
    assert pairs > 300


def test_the_audit_of_experiments_says_nothing_of_prompts_that_tell_nothing():
    tables = audit("shortcuts", environment="horizon", replicates=3, workers=1).tables
    assert not any(title.startswith("Prompts") for title in tables)
