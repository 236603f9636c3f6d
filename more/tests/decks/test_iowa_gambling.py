import numpy as np

from knownminds.agents import RandomResponder, simulate
from knownminds.environments import Session, session_stream
from knownminds.environments.world import follow_world
from knownminds_more.decks.iowa_gambling import LOSSES, IowaGambling


def lived(environment, actions, seed=3):
    session = Session(environment, environment.draw(session_stream(seed)))
    for action in actions:
        session.take(action)
    return session


def played(n=3, **settings):
    return simulate(RandomResponder, np.zeros((n, 0)), IowaGambling(**settings), 1)


def test_every_ten_cards_of_a_deck_cost_what_was_published():
    tens = LOSSES.reshape(4, 4, 10)
    assert tens.sum(axis=2).tolist() == [[1250] * 4] * 2 + [[250] * 4] * 2
    # Half of the cards of A and C cost something, a tenth of those of B and D.
    assert (LOSSES > 0).sum(axis=1).tolist() == [20, 4, 20, 4]
    assert [sorted(set(deck[deck > 0])) for deck in LOSSES] == [
        [150, 200, 250, 300, 350],
        [1250],
        [25, 50, 75],
        [250],
    ]


def test_a_deck_shows_its_cards_in_order_whatever_is_taken_between_and_begins_anew():
    environment = IowaGambling(90)
    actions = [1, 0] * 45
    session = lived(environment, actions)
    turns = session.turns
    for deck, gain in ((0, 100.0), (1, 100.0)):
        own = [turn.brought for turn in turns if turn.action == deck]
        assert [b["loss"] for b in own] == [*LOSSES[deck], *LOSSES[deck][:5]]
        assert {b["gain"] for b in own} == {gain}
    assert all(turn.reward == turn.brought["gain"] - turn.brought["loss"] for turn in turns)
    told = follow_world(environment.world, session.design.table, np.array(actions))
    assert told["reward"].tolist() == [turn.reward for turn in turns]
    assert told["loss"].tolist() == [turn.brought["loss"] for turn in turns]


def test_a_trial_without_an_answer_turns_no_card():
    environment = IowaGambling(12)
    turns = lived(environment, [1] * 5 + [None] + [1] * 6).turns
    assert turns[5].reward is None
    assert turns[5].brought == {}
    assert [t.brought["loss"] for t in turns if t.brought] == LOSSES[1][:11].tolist()


def test_performance_is_the_share_of_cards_from_the_good_decks():
    trials = played()
    good = IowaGambling().performance(trials)
    assert np.array_equal(good, trials.frame["action"].isin([2, 3]))
    shares = [trials.frame[name].notna().all() for name in ("gain", "loss", "reward")]
    assert all(shares)
