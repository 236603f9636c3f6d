"""What cannot be traced gets a sentence that says what to write instead, with its line."""

import inspect
import math

import numpy as np
import pytest

from knownminds.agents import Model, positive, unit
from knownminds.agents.compiler.kernels import likelihood_text


class Learner(Model):
    """What the refused ones change."""

    alpha = unit("rate")
    beta = positive("inverse temperature")

    def begin(self):
        self.values = np.full(2, 0.5)

    def respond(self, trial):
        return self.beta * self.values

    def update(self, trial):
        self.values[trial.action] += self.alpha * (trial.reward - self.values[trial.action])


class MathFunction(Learner):
    def respond(self, trial):
        return math.exp(self.beta) * self.values  # here


class ByList(Learner):
    def respond(self, trial):
        return [self.beta, 1.0][trial.state] * self.values  # here


class NoLaw(Learner):
    def report(self, trial):
        return self.values[trial.action]


class While(Learner):
    def update(self, trial):
        while self.values[0] > 0.1:  # here
            self.values[0] = self.values[0] * self.alpha


class Alias(Learner):
    def begin(self):
        self.values = np.full(2, 0.5)
        self.before = np.zeros(2)

    def update(self, trial):
        self.before = self.values
        self.values[trial.action] = trial.reward


class NewNames(Learner):
    def update(self, trial):
        self.last = trial.action


class UnknownFunction(Learner):
    def respond(self, trial):
        return np.sinh(self.beta) * self.values  # here


class ThreeOfTwo(Learner):
    def respond(self, trial):
        return np.zeros(3)


class TooManyPaths(Learner):
    def update(self, trial):
        total = 0.0
        for k in range(13):
            total = total + (1.0 if trial.reward > k else 0.0)
        self.values[0] = total


class BeginsByAnyColumn(Learner):
    separate = ("state",)

    def begin(self, trial):
        self.values = np.full(2, 0.5) * trial.state + trial.cue  # here


class Option(Learner):
    def respond(self, trial):
        return self.beta * (self.values - np.max(self.values, initial=0.9))  # here


REFUSED = {
    Option: "np.maximum is called with initial, which kernels do not know; leave it out",
    BeginsByAnyColumn: "begin() reads trial.cue, which may change within a sequence; name it in",
    MathFunction: "write np.exp",
    ByList: "index a NumPy array",
    NoLaw: "report() returns no law",
    While: "write `for` over a fixed range",
    Alias: "assign a copy, self.before.copy",
    NewNames: "sets or drops self.last; set all that is remembered in begin",
    UnknownFunction: "np.sinh is not among the functions",
    ThreeOfTwo: "3 numbers for 2 actions",
    TooManyPaths: "write np.where for values",
}


@pytest.mark.parametrize("model", REFUSED, ids=lambda m: m.__name__)
def test_the_refusal_names_the_model_the_line_and_the_remedy(model):
    with pytest.raises(ValueError, match=f"^{model.__name__} cannot be turned into a ker") as told:
        likelihood_text(model)
    text = str(told.value)
    assert REFUSED[model] in text
    assert text.endswith(".")
    lines, first = inspect.getsourcelines(model)
    marked = [first + k for k, line in enumerate(lines) if "# here" in line]
    for line in marked:
        assert f"line {line}" in text
