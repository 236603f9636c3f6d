"""The contract of every model as one check, for our models and for those of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice, product
from math import exp
from textwrap import wrap
from typing import Any

import numpy as np

from knownminds.agents import Model, play, simulate
from knownminds.agents.parameters import Array
from knownminds.environments import ENVIRONMENTS, Environment, Trials, answer_columns, make
from knownminds.environments.record.text_table import WIDTH

from .branches import Branches
from .fits.model_data import ModelData

N_SUBJECTS, N_POINTS = 4, 4000
CORNER = 3.0  # prior standard deviations from the mean
MOST_CORNERS = 64
LAPSE = 0.15
# Subjects who play on for branches that were taken one way only: in at most so many rounds, and
# trials.
ROUNDS, MOST_TRIALS = 8, 2000
# Steps of fourth-order differences, relative to the parameter. Where a function bends within the
# first step, the error falls with the next one; a wrong slope stays wrong at all of them.
STEPS = (1e-3, 1e-4, 1e-5)
AS_DIFFERENCES = 1e-6  # of slopes, relative to 1 + their size + that of the log-likelihood
GAPS = 0.3
CLOSE = 1e-10  # tolerance of log-likelihoods of kernel and step loop, relative to 1 + their size


@dataclass(frozen=True)
class Rule:
    """One rule of the contract: its largest deviation, and a sentence if it is broken."""

    name: str
    off: float
    broken: str = ""


@dataclass(frozen=True)
class AgentCheck:
    """The result of `check_agent`; prints itself as a table.

    Parameters
    ----------
    model, environment : names
    rules : the rules, each with its largest deviation
    one_way : Conditions of the model's code that went one way only however long it played: what the
        other way does was not checked.
    """

    model: str
    environment: str
    rules: tuple[Rule, ...]
    one_way: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all rules are kept."""
        return not any(rule.broken for rule in self.rules)

    def __str__(self) -> str:
        rows = [f"{'rule':<58}{'deviation':>10}"]
        for rule in self.rules:
            rows.append(f"{rule.name:<58}{rule.off:>10.1e}  {'broken' if rule.broken else 'kept'}")
            rows += wrap(rule.broken, WIDTH, initial_indent="  ", subsequent_indent="  ")
        where = f" in {self.environment}" if self.environment else ""
        rows += [f"went one way only, so that the other is not checked: {o}" for o in self.one_way]
        return "\n".join([f"contract of {self.model}{where}", *rows])


def check_agent(
    model: type[Model], environment: Environment | str | None = None, seed: int = 0
) -> AgentCheck:
    """Check a model against the contract that all models keep; broken rules are not raised.

    Parameters
    ----------
    environment : The experiment in which it plays, or its name; if None, the first registered one
        that it can play.

    Raises
    ------
    ValueError : If there is no experiment of that name.

    Returns
    -------
    AgentCheck : A table of the rules, with the largest deviation of each and a sentence for each
        broken one.
    """
    given = make(environment) if isinstance(environment, str) else environment
    shown = {*given.fields.stimulus, *given.fields.feedback, *given.drawn} if given else set()
    try:
        shared = sorted(set(model.parameters.names) & {*model.columns, *model.design, *shown})
    except ValueError as error:  # a definition that cannot be traced
        return AgentCheck(model.name, "", (Rule("kernels follow from it", 1.0, str(error)),))
    if shared:
        text = f"The parameter {shared[0]!r} is called as a column is; rename it."
        names = Rule("parameters are called otherwise than columns", len(shared), text)
        return AgentCheck(model.name, "", (names,))
    played = given or next((p for name in ENVIRONMENTS if model.plays(p := make(name))), None)
    if played is None or not model.plays(played):
        return AgentCheck(model.name, played.name if played else "", (_reads(model, played),))
    rules, contract = [Rule("what it reads is there", 0.0)], _Contract(model, played, seed)
    with np.errstate(all="ignore"):
        try:
            for rule in contract.rules():
                rules.append(rule)
                if np.isnan(rule.off):
                    break  # later checks would only repeat this
        except ValueError as error:  # no kernel can be made of the definition in this experiment
            rules.append(Rule("kernels follow from it", 1.0, str(error)))
    return AgentCheck(model.name, played.name, tuple(rules), tuple(contract.branches.one_way))


def _reads(model: type[Model], environment: Environment | None) -> Rule:
    name = "what it reads is there"
    if environment is not None:
        try:
            model.check_plays(environment)
        except ValueError as error:
            return Rule(name, 1.0, str(error))
    known = {"action", "response", "reward"}
    for experiment in map(make, ENVIRONMENTS):
        known |= {*experiment.fields.stimulus, *experiment.fields.feedback, *experiment.drawn}
    odd = [c for c in (*model.columns, *model.design) if c not in known]
    text = f"No experiment has {odd[0]!r}" if odd else "No experiment shows all that it reads"
    return Rule(name, float(len(odd)), f"{text}; name one that does (environment=...).")


class _Contract:
    """The rules for one model in one experiment."""

    def __init__(self, model: type[Model], environment: Environment, seed: int):
        self.model, self.environment, self.seed = model, environment, seed
        self.rng = np.random.default_rng(seed)
        self.branches = Branches(model)
        self.theta = model.parameters.draw(self.rng, N_SUBJECTS)

    def rules(self) -> Iterator[Rule]:
        self.trials = simulate(self.model, self.theta, self.environment, self.seed, lapse=LAPSE)
        yield self._corners()
        yield self._draws()
        for lapse, note in ((None, ""), (LAPSE, ", with lapses")):
            yield self._likelihood(lapse, note)
            yield self._slopes(lapse, note)
        yield self._sums()
        yield self._gaps()
        for _ in range(min(ROUNDS, MOST_TRIALS // len(self.trials.frame))):
            if not self.branches.one_way:
                break
            self.seed, self.theta = self.seed + 1, self.model.parameters.draw(self.rng, N_SUBJECTS)
            self.trials = simulate(self.model, self.theta, self.environment, self.seed, lapse=LAPSE)
            for rule in (self._draws(), self._likelihood(None, "")):
                if rule.broken:
                    yield Rule(f"{rule.name}, on rare branches", rule.off, rule.broken)
                    return

    def _data(self, trials: Trials) -> ModelData:
        return ModelData.read(
            self.model, trials, self.environment.n_actions or None, all_trials=True
        )

    def _judged(self, name: str, off: float, bound: float, broken: str) -> Rule:
        return Rule(name, off, "" if off <= bound else broken)

    def _corners(self) -> Rule:
        law, n = self.model.parameters, len(self.model.parameters)
        signs = np.array(list(islice(product((-1.0, 1.0), repeat=n), MOST_CORNERS)))
        corners = law.constrain(law.mean + CORNER * law.sd * signs.reshape(len(signs), n))
        data = self._data(self.trials).repeat(np.zeros(len(corners), dtype=np.int64))
        for lapse in (None, np.full(len(corners), LAPSE)):
            total, gradient = data.log_likelihood(corners, lapse)
            bad = ~(np.isfinite(total) & np.isfinite(gradient).all(axis=1))
            if bad.any():
                values = zip(law.names, corners[np.flatnonzero(bad)[0]].tolist(), strict=True)
                where = ", ".join(f"{name}={value:.3g}" for name, value in values)
                text = f"Likelihood or slope is not finite at {where}; keep it in range (np.clip)."
                return Rule("finite at the corners of the prior", np.nan, text)
        return Rule("finite at the corners of the prior", 0.0)

    def _agent(self, i: int, lapse: float | None) -> Model:
        actions = self.environment.n_actions or None
        return self.model.from_theta(self.theta[i], lapse=lapse or 0.0, actions=actions)

    def _draws(self) -> Rule:
        apart = 0.0
        for i in range(2):
            alone = play(self._agent(i, LAPSE), self.environment, self.seed, i).frame
            fused = self.trials.frame[self.trials.frame["subject"] == str(i)]
            for name in answer_columns(self.environment):
                pair = [f[name].to_numpy(float, na_value=-9.0) for f in (alone, fused)]
                same = len(pair[0]) == len(pair[1])
                apart = max(apart, np.max(np.abs(pair[0] - pair[1])) if same else np.inf)
        text = "Step loop and kernel give other answers with the same random numbers."
        return self._judged("the kernel plays what the step loop plays", apart, 1e-9, text)

    def _likelihood(self, lapse: float | None, text: str) -> Rule:
        rates = None if lapse is None else np.full(N_SUBJECTS, lapse)
        kernel = self._data(self.trials).log_likelihood(self.theta, rates)[0]
        with self.branches if lapse is None else nullcontext():
            plain = np.array([self._plain(i, lapse) for i in range(N_SUBJECTS)])
        apart = np.abs(kernel - plain) / (1.0 + np.abs(plain))
        apart[kernel == plain] = 0.0  # both may also agree that an answer is impossible
        worst = int(np.argmax(np.nan_to_num(apart, nan=np.inf)))
        values = f"{kernel[worst]:.8g}, that of the step loop {plain[worst]:.8g}"
        pairs = zip(self.model.parameters.names, self.theta[worst].tolist(), strict=True)
        at = ", ".join(f"{name}={value:.3g}" for name, value in pairs)
        broken = f"The kernel's likelihood is {values} at {at}."
        name = f"likelihood of kernel and step loop{text}"
        return self._judged(name, float(apart[worst]), CLOSE, broken)

    def _plain(self, i: int, lapse: float | None) -> float:
        agent, total = self._agent(i, lapse), 0.0
        frame = self.trials.frame
        rows: list[Any] = frame[frame["subject"] == str(i)].to_dict("records")
        for row in rows:
            action, response = (_given(row, name) for name in ("action", "response"))
            total += agent.log_probability(row, action, response)
            agent.learn(row, -1 if action is None else action, row["reward"])
        return total

    def _slopes(self, lapse: float | None, text: str) -> Rule:
        data, law = self._data(self.trials), self.model.parameters
        mixed = lapse is not None
        values = np.column_stack([self.theta, np.full(N_SUBJECTS, lapse)]) if mixed else self.theta
        upper = [*(p.support.upper for p in law), *([1.0] if mixed else [])]

        def at(values: Array) -> tuple[Array, Array]:
            theta = values[:, :-1] if mixed else values
            return data.log_likelihood(theta, values[:, -1] if mixed else None)

        total, gradient = at(values)
        off, worst = 0.0, ""
        for k, name in enumerate([*law.names, *(["lapse"] if mixed else [])]):
            # Near an end of its support, a function may bend within a step of its size.
            room = np.minimum(1.0, np.minimum(np.abs(values[:, k]), upper[k] - values[:, k]))
            apart = np.full(N_SUBJECTS, np.inf)
            for step in STEPS:
                h = np.zeros_like(values)
                h[:, k] = step * room
                near, far = (at(values + n * h)[0] - at(values - n * h)[0] for n in (1, 2))
                numeric = (8 * near - far) / (12 * h[:, k])
                error = np.abs(gradient[:, k] - numeric) / (1 + np.abs(numeric) + np.abs(total))
                apart = np.minimum(apart, error)
                if (apart <= AS_DIFFERENCES).all():
                    break
            if apart.max() > off:
                off, worst = float(apart.max()), name
        broken = f"The slope in {worst} is not that of the likelihood."
        return self._judged(f"slopes are those of differences{text}", off, AS_DIFFERENCES, broken)

    def _sums(self) -> Rule:
        agent, frame = self._agent(0, 0.0), self.trials.frame
        row: dict[Any, Any] = frame[frame["subject"] == "0"].to_dict("records")[0]
        name = "probabilities of all answers sum to 1"
        sums = []
        if _given(row, "action") is not None:
            sums.append(float(agent.probabilities(row).sum()))
        if _given(row, "response") is not None:
            low, high = self.environment.response_range
            # Some models say that a number beyond the range becomes its end.
            censored = getattr(self.model, "censored", None)
            if censored is False:  # the law of a number before it is cut off
                low, high = 4 * low - 3 * high, 4 * high - 3 * low
            at = low + (high - low) * (np.arange(N_POINTS) + 0.5) / N_POINTS
            action = _given(row, "action")
            whole: float = sum(exp(agent.log_density(row, x, action)) for x in at.tolist())
            whole *= (high - low) / N_POINTS
            if censored:
                whole += sum(exp(agent.log_density(row, x, action)) for x in (low, high))
            sums.append(whole)
        worst = max(sums, key=lambda total: abs(total - 1.0), default=1.0)
        broken = (
            f"They sum (the density integrates) to {worst:.6g}; a law's log_density, or what "
            "respond returns as Probabilities, lacks a factor."
        )
        return self._judged(name, abs(worst - 1.0), 1e-2, broken)

    def _gaps(self) -> Rule:
        frame = self.trials.to_frame()
        gone = self.rng.random(len(frame)) < GAPS
        gone &= (frame.groupby("subject").cumcount() > 1).to_numpy()  # a fit needs two of each
        if self.environment.fields.dependent:  # later observations depend on earlier answers
            gone[:] = False
        holes = frame.copy()
        holes.loc[gone, [c for c in ("action", "response", "reward") if c in frame]] = None
        holes.loc[gone, "outcome"] = "malformed"
        pair = [
            self._data(Trials.from_frame(f)).log_likelihood(self.theta)[0]
            for f in (holes, frame[~gone])
        ]
        off = float(np.max(np.abs(pair[0] - pair[1]) / (1.0 + np.abs(pair[1]))))
        broken = "A trial without an answer adds something, or teaches something."
        return self._judged("trials without an answer teach nothing", off, CLOSE, broken)


def _given(row: dict[Any, Any], name: str) -> Any:
    value = row.get(name)
    return None if value is None or value != value or str(value) == "<NA>" else value
