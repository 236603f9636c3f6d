"""Columns of a user's own beside those of the experiment."""

import numpy as np

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import Trials
from knownminds.inference import ModelData
from knownminds_more.reversal.reversal_learning import ReversalLearning


def test_only_fields_of_the_experiment_separate_learners():
    """A user's own column, with empty cells, changes no likelihood and no fold."""
    truth = np.tile([0.3, 4.0, 0.0], (3, 1))
    reversing = simulate(RescorlaWagner, truth, ReversalLearning(), 4)
    own = np.where(np.arange(len(reversing)) % 7 == 0, np.nan, np.arange(len(reversing)) % 3)
    stray = Trials.from_frame(
        reversing.to_frame().assign(context=own, stage=own), environment=ReversalLearning()
    )
    data = [ModelData.read(RescorlaWagner, trials) for trials in (reversing, stray)]
    assert data[1].sequences.length.tolist() == data[0].sequences.length.tolist()
    plain, other = (each.log_likelihood(truth)[0] for each in data)
    assert other.tolist() == plain.tolist()
