"""What symbols and numbers would do differently: done right, or refused with the line."""

import contextlib
import inspect

import numpy as np
import pytest

from knownminds.agents import Model, Probabilities, positive, unit
from knownminds.agents.compiler import checking
from knownminds.agents.compiler import expressions as ex
from knownminds.agents.compiler.cache import source
from knownminds.agents.compiler.program import trace


class Learner(Model):
    """What the others change."""

    alpha = unit("rate")
    beta = positive("inverse temperature")

    def begin(self):
        self.values = np.full(2, 0.5)

    def respond(self, trial):
        return self.beta * self.values

    def update(self, trial):
        self.values[trial.action] += self.alpha * (trial.reward - self.values[trial.action])


class Try(Learner):
    def update(self, trial):
        try:  # here
            self.values[trial.action] += self.alpha / trial.reward
        except ZeroDivisionError:
            self.values[trial.action] = 0.0


class Suppressed(Learner):
    def update(self, trial):
        with contextlib.suppress(ZeroDivisionError):  # here
            self.values[trial.action] += self.alpha / trial.reward


class TryInAMethod(Learner):
    def update(self, trial):
        self.values[trial.action] += self.over(trial.reward)

    def over(self, x):
        try:  # here
            return self.alpha / x
        except ZeroDivisionError:
            return 0.0


LAST = 0.0


class Global(Learner):
    def update(self, trial):
        global LAST  # here
        self.values[trial.action] += self.alpha * LAST
        LAST = trial.reward


class InASet(Learner):
    def update(self, trial):
        if trial.action in {1}:  # here
            self.values[1] += self.alpha


class DictionaryGet(Learner):
    def respond(self, trial):
        return self.beta * self.values * {0: 1.0, 1: 2.0}.get(trial.state, 3.0)  # here


class AskedForType(Learner):
    def update(self, trial):
        if isinstance(trial.reward, float):  # here
            self.values[trial.action] += self.alpha


class RowIsAView(Learner):
    def begin(self):
        self.table, self.values = np.zeros((2, 2)), np.zeros(2)

    def update(self, trial):
        row = self.table[trial.state]  # here
        self.table[trial.state, trial.action] += self.alpha * trial.reward
        self.values = row.copy()


class FromTheEnd(Learner):
    def update(self, trial):
        self.values[trial.action - 1] += self.alpha * trial.reward  # here


class CutOff(Learner):
    def begin(self):
        self.values = np.zeros(2, dtype=int)  # here

    def update(self, trial):
        self.values[trial.action] = 10 * self.alpha * trial.reward


class WholePart(Learner):
    def respond(self, trial):
        return self.beta * self.values * (trial.count // 10)  # here


class Remainder(Learner):
    def respond(self, trial):
        return self.beta * self.values * (trial.count % 2)  # here


class Text(Learner):
    def update(self, trial):
        setattr(self, f"values_{trial.action}", self.alpha)  # here


class Turned(Learner):
    def update(self, trial):
        self.values[trial.action] += self.alpha * ~trial.action  # here


class Masked(Learner):
    def update(self, trial):
        self.values[self.values > 0.2] *= self.alpha  # here


class Asserted(Learner):
    def update(self, trial):
        assert trial.reward < 100  # here
        self.values[trial.action] += self.alpha


class BeyondTheEnd(Learner):
    def update(self, trial):
        self.values[trial.action + 1] += self.alpha  # here


class CallsItself(Learner):
    def update(self, trial):
        self.values[trial.action] += self.down(trial.count)

    def down(self, n):
        return 1.0 if n <= 0 else self.alpha * self.down(n - 1)  # here


class OneArray(Learner):
    def begin(self):
        self.values = self.other = np.zeros(2)


class ChangesAsked(Learner):
    def respond(self, trial):
        self.values[0] += 0.1
        return self.beta * self.values


class ChangesParameter(Learner):
    def update(self, trial):
        self.alpha = 0.9 * self.alpha
        self.values[trial.action] += self.alpha * trial.reward


REFUSED = {
    Try: "write the case as `if` or np.where",
    Suppressed: "write the case as `if` or np.where",
    TryInAMethod: "write the case as `if` or np.where",
    Global: "set it in begin() and change it there",
    InASet: "write a tuple after `in`",
    DictionaryGet: "index a NumPy array",
    AskedForType: "compare numbers",
    RowIsAView: "read it again after the change",
    FromTheEnd: "write one from 0 on",
    CutOff: "leave the dtype out",
    WholePart: "// of what is only known in the trial",
    Remainder: "% of what is only known in the trial",
    Text: "no text can be made of what is only known in the trial",
    Turned: "write 1 - x",
    Masked: "write np.where(condition, new, old)",
    Asserted: "leave checks of data out",
    BeyondTheEnd: "index 2 is out of bounds",
    CallsItself: "or of a method that calls itself",
    OneArray: "self.other and self.values are one array after begin()",
    ChangesAsked: "respond() changes self.values; what a trial changes is changed in update()",
    ChangesParameter: "update() changes self.alpha, a parameter",
}


def held(model):
    """Trace a model and hold its kernels against it, without compiling them."""
    with ex.new_graph():
        text = source(trace(model, 2))
    checking.check_kernels(model, text, 2)


@pytest.mark.parametrize("model", REFUSED, ids=lambda m: m.__name__)
def test_what_would_differ_is_refused_with_its_line(model):
    with pytest.raises(ValueError, match=rf"\b{model.__name__}\b") as told:
        held(model)
    text = str(told.value)
    assert REFUSED[model] in text
    lines, first = inspect.getsourcelines(model)
    for line in [first + k for k, line in enumerate(lines) if "# here" in line]:
        assert f"line {line}: " in text


class Powers(Learner):
    def respond(self, trial):
        return self.beta * (np.power(self.values, 3) + self.values**2) + (-self.values) ** 3


class OwnArrays(Learner):
    def respond(self, trial):
        weights = np.exp(np.array([self.beta * self.values[0], self.beta * self.values[1]]))
        return Probabilities(weights / weights.sum())


class Products(Learner):
    def update(self, trial):
        turn = np.outer(self.values, self.values) * self.alpha
        self.values = (turn @ self.values + trial.reward * np.arange(2)).clip(-1, 0.8)


@pytest.mark.parametrize("model", [Powers, OwnArrays, Products], ids=lambda m: m.__name__)
def test_what_numpy_takes_means_the_same(model, monkeypatch):
    monkeypatch.setattr(checking, "RANGES", ((-0.9, 0.9),))  # values on both sides of 0
    held(model)


class ByTheSign(Learner):
    """The same power stands under a condition in one slope, and under its reverse in another."""

    gamma = positive("exponent of losses", -0.2, 0.3)
    delta = positive("exponent of gains", -0.2, 0.3)
    separate = ()

    def utility(self, x):
        size, exponent = np.abs(x) / 100, np.where(x < 0, self.gamma, self.delta)
        power = np.where(size > 0, np.exp(exponent * np.log(np.maximum(size, 1e-300))), 0.0)
        return np.where(x < 0, -self.alpha, 1.0) * power

    def respond(self, trial):
        return (self.utility(trial.x) - self.utility(trial.y)) * self.beta


def test_what_is_rare_by_two_conditions_is_reckoned_where_either_holds():
    held(ByTheSign)
