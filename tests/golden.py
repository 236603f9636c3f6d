"""What must not change: numbers of every model, measure and prompt, computed before the redesign.

    python golden.py check            # recompute from the stored inputs and compare
    python golden.py check agents     # one part alone: agents, fits, measures, prompts
    NUMBERS=DIR python golden.py ...  # the stored numbers lie in DIR (beside this file by default)

Where the API has moved on, keep a copy of this file in the project (tests/golden.py, no test of
pytest's) with its adapter changed, and point NUMBERS to the stored ones.

Parts
-----
agents    for each model: trials it played in its first environment, three parameter vectors,
          log-likelihood and gradient with and without lapses (relative 1e-9), and whether
          `simulate` gives the very same trials again
fits      maximum a posteriori and maximum likelihood estimates of stored trials (1e-4 of the
          prior's standard deviation on the unconstrained scale; log-likelihood 1e-6)
measures  estimate, standard error, interval and count of each measure on stored trials (1e-9;
          bootstrapped intervals of the same seed 1e-9, or 2 Monte-Carlo errors with another one)
prompts   SHA-256 of what is shown on the first six trials of a session, the answer of a
          cooperative participant, and how it is read

Numbers that had to change stand in golden_changes.toml with their reason; the check counts them.

Everything that touches the project's names stands in the adapter section. When the API changes,
change the adapter, never the stored files or the tolerances.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(os.environ.get("NUMBERS", Path(__file__).parent / "numbers"))
# Stored numbers that were wrong: item "part: name: key", old, new, within (relative), reason.
LISTED = Path(__file__).with_name("golden_changes.toml")
CHANGES = {one["item"]: one for one in tomllib.loads(LISTED.read_text("utf-8"))["change"]}
CHANGED: list[str] = []  # those that the check met

# Adapter: the only part that knows the project's names

from knownminds.agents import AGENTS, simulate  # noqa: E402
from knownminds.environments import ENVIRONMENTS, Session, Trials, make, session_stream  # noqa: E402
from knownminds.inference import MEASURES, ModelData, maximum_a_posteriori, maximum_likelihood  # noqa: E402


def environment_of(model: str):
    """The first environment that a model plays, in a size that is quick."""
    for name in ENVIRONMENTS:
        settings = (
            {"network": "fever", "n_contexts": 12, "repeats": 2} if name == "diagnosis" else {}
        )
        environment = make(name, **settings)
        if AGENTS[model].plays(environment):
            if environment.size == "n_trials" or environment.n_trials <= 200:
                return environment
            return make(name, **settings)
    raise LookupError(model)


def draw(model: str, n: int, seed: int) -> np.ndarray:
    return AGENTS[model].parameters.draw(np.random.default_rng(seed), n)


def play(model: str, theta: np.ndarray, environment, seed: int) -> pd.DataFrame:
    return simulate(AGENTS[model], theta, environment, seed).to_frame()


def log_likelihood(model: str, frame: pd.DataFrame, environment, theta, lapse):
    data = ModelData.read(
        AGENTS[model],
        Trials.from_frame(frame, environment=environment),
        environment.n_actions,
        all_trials=True,
    )
    return data.log_likelihood(theta, None if lapse is None else np.full(len(theta), lapse))


def estimates(model: str, frame: pd.DataFrame, environment, how: str):
    fit = maximum_a_posteriori if how == "map" else maximum_likelihood
    found = fit(AGENTS[model], Trials.from_frame(frame, environment=environment))
    return found.to_frame()


def unconstrained(model: str, values: np.ndarray) -> np.ndarray:
    return AGENTS[model].parameters.unconstrain(values)


def prior_sd(model: str) -> np.ndarray:
    return np.asarray(AGENTS[model].parameters.sd)


def measure(name: str, frame: pd.DataFrame, environment) -> dict:
    try:
        e = MEASURES[name].estimate(Trials.from_frame(frame, environment=environment))
    except ValueError as error:
        return {"error": str(error)}
    return {
        "value": e.value,
        "standard_error": e.standard_error,
        "low": e.low,
        "high": e.high,
        "n": e.n,
    }


def violators(name: str):
    """Model, parameters of 20 agents that a measure is meant to notice, and its environment."""
    m = MEASURES[name]
    small = {"network": "fever", "n_contexts": 12, "repeats": 2}
    environment = make(
        m.environments[0], **(small if m.environments[0] == "diagnosis" else m.settings or {})
    )
    parameters = AGENTS[m.violator].parameters
    direction = np.array([m.dial.direction.get(p, 0.0) for p in parameters.names])
    z = np.random.default_rng(5).normal(
        parameters.mean + 0.5 * direction, 0.3, (20, len(direction))
    )
    return m.violator, parameters.constrain(z), environment


def shown(name: str, trials: int = 6) -> list[dict]:
    """Hash of each prompt, what a cooperative participant says, and how that is read."""
    environment = make(name)
    design = environment.draw(session_stream(7, 0))
    model = next(m for m in AGENTS.values() if m.plays(environment))
    agent = model.from_theta(
        model.parameters.constrain(np.asarray(model.parameters.mean)[None])[0],
        actions=environment.n_actions,
    )
    agent.reset()
    rng, session, rows = np.random.default_rng(3), Session(environment, design), []
    for seen in session:
        if len(rows) == trials:
            break
        prompt = session.render()
        choice = agent.choose(seen, rng)
        row = {"prompt": prompt.hash}
        try:
            said = session.say(choice)
        except ValueError:  # one reply answers several trials
            said = ""
        else:
            answer = session.parse(said)
            row |= {
                "said": said,
                "outcome": str(answer.outcome),
                "action": _plain(answer.action),
                "response": _plain(answer.response),
            }
        rows.append(row)
        turn = session.take(choice, said)
        agent.learn(
            turn.known,
            -1 if turn.action is None else turn.action,
            float("nan") if turn.reward is None else turn.reward,
        )
    return rows


# The parts

FITTED = (
    "rescorla_wagner_dual",
    "two_step_reduced",
    "horizon_explorer",
    "weighted_bayes",
    "balloon_pumper",
    "hyperbolic_discounter",
    "change_point_observer",
    "noisy_or",
    "kalman_observer",
    "static_bayes_observer",
    "random_utility",
    "belief_sampler",
    "cue_combiner",
    "network_reasoner",
    "prospect_theory",
)


def _plain(x):
    return None if x is None else float(x)


def agents(write: bool) -> list[str]:
    wrong = []
    for name in AGENTS:
        file = HERE / "agents" / f"{name}.parquet"
        if not write and not file.exists():
            continue  # added later
        environment = environment_of(name)
        theta = draw(name, 3, 1)
        frame = play(name, theta, environment, 11)
        if write:
            file.parent.mkdir(parents=True, exist_ok=True)
            frame.to_parquet(file, index=False)
        elif not _same(frame, pd.read_parquet(file)):
            wrong.append(f"agents: {name}: other trials than before")
        stored = pd.read_parquet(file)
        values = {"theta": theta.tolist(), "environment": environment.name}
        for lapse in (None, 0.15):
            ll, gradient = log_likelihood(name, stored, environment, theta, lapse)[:2]
            values[f"ll {lapse}"], values[f"gradient {lapse}"] = ll.tolist(), gradient.tolist()
        wrong += _compare("agents", name, values, write, 1e-9)
    for name in {f.stem for f in (HERE / "agents").glob("*.json")} - set(AGENTS):
        wrong.append(f"agents: {name}: gone")
    return wrong


def fits(write: bool) -> list[str]:
    wrong = []
    for name in (n for n in FITTED if n in AGENTS):
        environment = environment_of(name)
        file = HERE / "fits" / f"{name}.parquet"
        if write:
            file.parent.mkdir(parents=True, exist_ok=True)
            play(name, draw(name, 20, 2), environment, 12).to_parquet(file, index=False)
        frame = pd.read_parquet(file)
        for how in ("map", "mle"):
            table = estimates(name, frame, environment, how)
            json_file = HERE / "fits" / f"{name}.{how}.json"
            names = list(AGENTS[name].parameters.names)
            values = {
                "estimates": table[names].to_numpy(float).tolist(),
                "status": table["status"].astype(str).tolist(),
                "ll": table["log_likelihood"].to_numpy(float).tolist(),
            }
            if write:
                json_file.write_text(json.dumps(values))
                continue
            before = json.loads(json_file.read_text())
            worse = np.array(before["ll"]) - np.array(values["ll"])
            ok = np.array(before["status"]) == "ok"
            if how == "mle" and np.nanmax(np.where(ok, worse, 0)) > 1e-6:
                wrong.append(f"fits: {name} {how}: log-likelihood worse by {np.nanmax(worse):.3g}")
            a, b = (unconstrained(name, np.array(v["estimates"])) for v in (before, values))
            apart = np.abs(a - b)[ok] / prior_sd(name)
            if apart.size and np.nanmax(apart) > 1e-4:
                wrong.append(f"fits: {name} {how}: estimates {np.nanmax(apart):.3g} prior sd apart")
    return wrong


def measures(write: bool) -> list[str]:
    wrong = []
    for name in MEASURES:
        file = HERE / "measures" / f"{name}.parquet"
        if not write and not file.exists():
            continue
        model, theta, environment = violators(name)
        if write:
            file.parent.mkdir(parents=True, exist_ok=True)
            play(model, theta, environment, 13).to_parquet(file, index=False)
        values = measure(name, pd.read_parquet(file), environment)
        wrong += _compare("measures", name, values, write, 1e-9)
    for name in {f.stem for f in (HERE / "measures").glob("*.json")} - set(MEASURES):
        wrong.append(f"measures: {name}: gone")
    return wrong


def prompts(write: bool) -> list[str]:
    wrong = []
    for name in ENVIRONMENTS:
        if not write and not (HERE / "prompts" / f"{name}.json").exists():
            continue
        wrong += _compare("prompts", name, {"trials": shown(name)}, write, 1e-12)
    for name in {f.stem for f in (HERE / "prompts").glob("*.json")} - set(ENVIRONMENTS):
        wrong.append(f"prompts: {name}: gone")
    return wrong


def _same(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    shared = [c for c in b if c in a]
    try:
        pd.testing.assert_frame_equal(
            a[shared].reset_index(drop=True), b[shared], check_dtype=False, rtol=1e-9, atol=1e-9
        )
    except AssertionError:
        return False
    return len(shared) == len(b.columns)


def _compare(part: str, name: str, values: dict, write: bool, within: float) -> list[str]:
    file = HERE / part / f"{name}.json"
    if write:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
        return []
    before, wrong = json.loads(file.read_text()), []
    for key, old in before.items():
        new = json.loads(json.dumps(values)).get(key)
        listed = CHANGES.get(f"{part}: {name}: {key}")
        if listed is not None:
            if _close(old, listed["old"], within) and _close(listed["new"], new, listed["within"]):
                CHANGED.append(listed["item"])
                continue
            wrong.append(f"{part}: {name}: {key}: listed {listed['old']} -> {listed['new']}")
        if not _close(old, new, within):
            wrong.append(f"{part}: {name}: {key}: {str(old)[:90]} -> {str(new)[:90]}")
    return wrong


def _close(old, new, within: float) -> bool:
    if isinstance(old, list):
        return (
            isinstance(new, list)
            and len(old) == len(new)
            and all(_close(o, n, within) for o, n in zip(old, new, strict=True))
        )
    if isinstance(old, dict):
        return isinstance(new, dict) and all(_close(old[k], new.get(k), within) for k in old)
    if isinstance(old, float) and isinstance(new, int | float):
        return (
            (np.isnan(old) and np.isnan(new))
            or old == new
            or abs(old - new) <= within * (1 + abs(old))
        )
    return old == new


if __name__ == "__main__":
    action, *names = sys.argv[1:] or ["check"]
    parts = {"agents": agents, "fits": fits, "measures": measures, "prompts": prompts}
    wrong = [line for n in (names or parts) for line in parts[n](action == "make")]
    print("\n".join(wrong) or f"{action}: all as it should be")
    print(f"{len(CHANGED)} of {len(CHANGES)} listed changes found as listed")
    sys.exit(bool(wrong))
