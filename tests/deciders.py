"""Deciders by hand: 200 contexts, five repetitions, one dial for each way of being incoherent."""

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from knownminds.inference.diagnosis.belief_decisions import BeliefDecisions


def decided(
    seed: int,
    *,
    contexts: int = 200,
    repetitions: int = 5,
    peek: float = 0.0,
    report_noise: float = 0.0,
    frame: float = 0.0,
    turn: float = 0.0,
    inverse_temperature: float = 10.0,
    decimals: int = 2,
) -> BeliefDecisions:
    """Let a decider state plain and squared-rule beliefs and decide; rational if all dials are 0.

    Yes is worth p - (1 - p), Defer .1, No nothing, in units of 1 / inverse_temperature. `peek`
    moves the belief acted on toward the state, `report_noise` is added to the logit of the
    stated one, `frame` to that under the squared rule, and `turn` makes Yes worth less above .7.
    """
    rng = np.random.default_rng(seed)
    posterior = np.clip((np.arange(contexts) + rng.random(contexts)) / contexts, 0.002, 0.998)
    state = (rng.random(contexts) < posterior).astype(int)
    shape = (contexts, repetitions)
    noise = report_noise * rng.standard_normal((2, *shape))
    shift = np.array([0.0, frame])[:, None, None]
    stated = np.round(expit(logit(posterior)[:, None] + noise + shift), decimals)
    acted_on = np.clip(posterior + peek * (state - 0.5), 0.0, 1.0)
    bold = 2.0 * acted_on - 1.0 - turn * (acted_on > 0.7)
    value = np.stack([bold, np.full(contexts, 0.1), np.zeros(contexts)], axis=-1)
    action = (inverse_temperature * value[:, None] + rng.gumbel(size=(*shape, 3))).argmax(axis=-1)
    return BeliefDecisions(
        pd.DataFrame(
            {
                "participant": "",
                "subject": "s",
                "session": "0",
                "context": np.repeat(np.arange(contexts), repetitions),
                "repetition": np.tile(np.arange(repetitions), contexts),
                "state": np.repeat(state, repetitions).astype(float),
                "posterior": np.repeat(posterior, repetitions),
                "action": action.ravel().astype(float),
                "plain": stated[0].ravel(),
                "squared": stated[1].ravel(),
            }
        ),
        pd.DataFrame(
            {
                "participant": "",
                "question": ["action", "plain", "squared"],
                "asked": contexts * repetitions,
                "missing": 0,
            }
        ),
    )
