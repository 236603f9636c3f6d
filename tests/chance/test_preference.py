from fractions import Fraction
from itertools import product

from played import observations

from knownminds.environments import Preference, check_environment, context_of
from knownminds.environments.chance.context_grid import MARKS


def test_the_grid_has_both_orders_of_both_pairs():
    environment = Preference()
    assert environment.n_trials == 36
    seen = {tuple(s[name] for name in Preference.factors) for s in observations(environment)}
    assert seen == {
        (*rest, kind, previous)
        for rest in product((0, 1), (0, 1), (1, 2, 3))
        for kind, previous in ((0, -1), (1, 0), (1, 1))
    }
    part = Preference(pairs="left_right", weights=(4,), kinds="single")
    assert part.n_trials == 2
    check_environment(part)


def test_what_is_named_first_has_the_larger_probability():
    environment = Preference()
    for seen in observations(environment):
        # One lot in k + 1 bears the word that is named last.
        lots = [seen["first"]] * seen["weight"] + [1 - seen["first"]]
        counted = [Fraction(lots.count(action), len(lots)) for action in (0, 1)]
        assert list(context_of(seen["cell"]).chance.shares) == counted
        assert environment.truth(seen).tolist() == [float(share) for share in counted]


def test_marks_are_of_the_order_the_name_and_the_draw_before():
    for seen in observations(Preference()):
        marks = dict(zip(MARKS, context_of(seen["cell"]).marks.T.tolist(), strict=True))
        assert marks["first"] == [seen["first"] == 0, seen["first"] == 1]
        assert marks["repeat"] == [seen["previous"] == 0, seen["previous"] == 1]
        assert marks["heads"] == [seen["pair"] == 0, False]
        assert marks["left"] == [seen["pair"] == 1, False]
        assert not any(marks["middle"] + marks["round"])
