"""What follows reversals, wins and losses, and which decks are preferred: read off sessions."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from knownminds.agents import RandomResponder, simulate
from knownminds.environments import Trials
from knownminds.inference import MEASURES
from knownminds_more.decks.iowa_gambling import GAINS, LOSSES
from knownminds_more.reversal.reversal_learning import ReversalLearning


def trials_of(**columns):
    frame = pd.DataFrame(columns)
    frame["outcome"] = np.where(frame["action"].isna(), "malformed", "ok")
    return Trials.from_frame(frame.assign(trial=range(len(frame)), subject="a"))


def two_blocks():
    better = [0, 0, 0, 1, 1, 1, 1, 1, 0, 0]
    action = [0, 1, 0, 0, None, 0, 1, 0, 1, 1]
    reward = [1, -1, 1, -1, None, -1, 1, -1, -1, 1]
    return trials_of(better=better, action=pd.array(action, "Int64"), reward=reward)


BY_HAND = {
    "perseverative_errors": 2.0,  # two after either reversal, a play without an answer apart
    "trials_to_criterion": 3.0,  # three on end are chosen nowhere: four answered plays, and two
    "win_stay": 1 / 3,  # of wins on plays 0, 2 and 6 the second is followed by the same
    "lose_shift": 3 / 4,  # of losses on 1, 5, 7 and 8 the last; after 3 nothing was answered
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_session_that_is_counted_by_hand(name):
    assert MEASURES[name].values(two_blocks()).value == pytest.approx([BY_HAND[name]])


def paid_by_lot(n_cards=100):
    """Mean of a card where each deck is as likely on every trial, from the published decks."""
    taken = binom.sf(np.arange(n_cards), n_cards, 0.25)  # that the k-th card of a deck is taken
    net = [np.resize(gain - losses, n_cards) for gain, losses in zip(GAINS, LOSSES, strict=True)]
    return sum(taken @ cards for cards in net) / n_cards


CHANCE = {"perseverative_errors": 1.0, "win_stay": 0.5, "lose_shift": 0.5, "payoff": paid_by_lot(),
          "net_score": 0.0, "net_score_rise": 0.0, "rare_loss_preference": 0.0}  # fmt: skip


@pytest.mark.parametrize("name", CHANCE)
def test_who_chooses_by_lot_has_what_the_page_says(name):
    measure = MEASURES[name]
    lived = simulate(RandomResponder, np.zeros((400, 0)), measure.place, 5)
    found = measure.estimate(lived)
    # Four standard errors; the last block of a session cuts a run of errors, and a streak is
    # followed by its like a little less often in short sessions: up to .02 and .005.
    short = {"perseverative_errors": 0.02, "win_stay": 0.005, "lose_shift": 0.005}.get(name, 0.0)
    assert abs(found.value - CHANCE[name]) < 4 * found.standard_error + short


def test_who_never_turns_round_is_not_left_out():
    place = ReversalLearning(n_plays=30, block_length=(10, 10))
    frame = simulate(RandomResponder, np.zeros((1, 0)), place, 5).to_frame()
    frame["action"] = frame["better"].iloc[0]
    told = Trials.from_frame(frame)
    assert MEASURES["perseverative_errors"].values(told).value.tolist() == [(10 + 0) / 2]
    assert MEASURES["trials_to_criterion"].values(told).value.tolist() == [(10 + 3) / 2]
