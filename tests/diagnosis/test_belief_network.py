import numpy as np
import pytest

from knownminds.environments.diagnosis import belief_network
from knownminds.environments.diagnosis.belief_network import UNTOLD, BeliefNetwork, Node
from knownminds.environments.diagnosis.evidence_contexts import spread_contexts
from knownminds.environments.diagnosis.network_files import SHIPPED, load_network, read_bif

YES = ("no", "yes")


def table(*rows):
    return np.array(rows, dtype=float)


def joint_of(network):
    """The probability of every combination of states, [*states]."""
    letters = dict(zip(network.names, "abcdefghijklmnopqrstuvwxyz", strict=False))
    scopes = ["".join(letters[n] for n in (*node.parents, node.name)) for node in network.nodes]
    joint = f"{','.join(scopes)}->{''.join(letters.values())}"
    return np.einsum(joint, *(node.table for node in network.nodes))


def enumerated(network, query, evidence):
    """What `posterior` does, from the joint table."""
    asked, joint, found = [network.position(name) for name in query], joint_of(network), []
    for told in evidence:
        part = joint[tuple(slice(None) if s == UNTOLD else slice(s, s + 1) for s in told)]
        rest = tuple(i for i in range(len(network.nodes)) if i not in asked)
        own = part.sum(axis=rest).transpose([sorted(asked).index(i) for i in asked])
        found.append(own / own.sum())
    return np.array(found)


def sprinkler():
    """Rain makes a sprinkler rest; both make grass wet."""
    wet = table([[1, 0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]])
    return BeliefNetwork(
        [
            Node("wet", YES, ("sprinkler", "rain"), wet),
            Node("sprinkler", YES, ("rain",), table([0.6, 0.4], [0.99, 0.01])),
            Node("rain", YES, (), table(0.8, 0.2)),
        ]
    )  # fmt: skip


def told_of(network, **known):
    """The states of all nodes, -1 where nothing is told."""
    states = np.full(len(network.nodes), UNTOLD)
    for name, state in known.items():
        i = network.position(name)
        states[i] = network.nodes[i].states.index(state)
    return states


def some_contexts(network, query, n=40, seed=0):
    """Draws from a network of which about half is told, never what is asked for."""
    rng = np.random.default_rng(seed)
    states = network.sample(rng.random((n, len(network.nodes))))
    states[rng.random(states.shape) < 0.5] = UNTOLD
    states[:, [network.position(name) for name in query]] = UNTOLD
    return states


# ---------------------------------------------------------------- exactness


def test_a_posterior_is_that_of_bayes_rule_by_hand():
    network = sprinkler()
    told = told_of(network, wet="yes")
    wet_and_rain = 0.2 * (0.99 * 0.8 + 0.01 * 0.99)
    wet_and_dry = 0.8 * 0.4 * 0.9
    exact = wet_and_rain / (wet_and_rain + wet_and_dry)
    assert network.posterior(["rain"], told)[0, 1] == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("name", ["fever", "crying"])
def test_elimination_agrees_with_the_sum_over_the_joint_table_whatever_is_told(name):
    network, about = load_network(name)
    for query in ([about.target], [about.auxiliary, about.target], [network.names[-1]]):
        told = some_contexts(network, query)
        ours, joint = network.posterior(query, told), enumerated(network, query, told)
        assert np.allclose(ours, joint, rtol=0, atol=1e-13)
        assert not np.allclose(ours, ours[:1])  # what is told matters


def test_the_heart_network_is_that_of_the_paper_and_agrees_with_long_simulation(monkeypatch):
    network, about = load_network("heart")
    assert (len(network.nodes), sum(map(len, network.parents))) == (20, 121)
    told = told_of(network, sex="male", lvh="yes")
    states = network.sample(np.random.default_rng(1).random((150_000, 20)))
    like = (states[:, told != UNTOLD] == told[told != UNTOLD]).all(axis=1)
    share = (states[like, network.position(about.target)] == about.present).mean()
    exact = network.posterior([about.target], told)[0, about.present]
    # Four standard errors of a share.
    assert abs(share - exact) < 4 * np.sqrt(exact * (1 - exact) / like.sum())
    # The disease with its eleven parents is one row per parent, not one of 2 ** 11.
    monkeypatch.setattr(belief_network, "LARGEST_TABLE", 20_000)
    assert network.posterior([about.target], told)[0, about.present] == exact


def test_samples_have_the_frequencies_of_the_joint_table():
    network, n = sprinkler(), 100_000
    states = network.sample(np.random.default_rng(3).random((n, 3)))
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, tuple(states.T), 1)
    p = joint_of(network)
    assert (np.abs(counts / n - p) < 4.5 * np.sqrt(p * (1 - p) / n) + 1e-12).all()


# ---------------------------------------------------------------- files

BIF = """
network unknown { }
// a comment
variable rain { type discrete [ 2 ] { no, yes }; }
variable wet { type discrete [ 3 ] { dry, damp, soaked }; property position = (1, 2) ; }
variable slip { type discrete [ 2 ] { no, yes }; }
probability ( rain ) { table 0.8, 0.2; }
probability ( wet | rain ) {
  (no) 0.9, 0.05, 0.05;
  (yes) 0.1, 0.3, 0.6;
}
probability ( slip | wet, rain ) {
  (dry, no) 0.9, 0.1;
  (dry, yes) 0.9, 0.1;
  (damp, no) 0.9, 0.1;
  (damp, yes) 0.9, 0.1;
  (soaked, no) 0.9, 0.1;
  (soaked, yes) 0.5, 0.5;
}
"""


def bif(tmp_path, text=BIF):
    path = tmp_path / "rain.bif"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.long
def test_a_bif_file_is_read(tmp_path):
    pytest.importorskip("pgmpy")
    network = read_bif(bif(tmp_path))
    assert [node.parents for node in network.nodes] == [(), ("rain",), ("wet", "rain")]
    exact = 0.2 * 0.6 * 0.5 / (0.8 * 0.05 * 0.1 + 0.2 * 0.6 * 0.5)
    told = told_of(network, wet="soaked", slip="yes")
    assert network.posterior(["rain"], told)[0, 1] == pytest.approx(exact, rel=1e-14)
    by_child = "probability ( wet | rain ) { table 0.9, 0.1, 0.05, 0.3, 0.05, 0.6; }"
    rows = BIF[BIF.index("probability ( wet") : BIF.index("probability ( slip")]
    again = read_bif(bif(tmp_path, BIF.replace(rows, by_child + "\n")))
    assert np.array_equal(joint_of(again), joint_of(network))
    without = BIF.replace("  (soaked, no) 0.9, 0.1;\n", "")
    sums_to_more = BIF.replace("(yes) 0.1", "(yes) 0.5")
    for broken, remark in (
        (without, "slip given wet=soaked, rain=no has 0, 0"),
        (sums_to_more, "wet given rain=yes has 0.5, 0.3, 0.6"),
        ("no network", "pgmpy cannot read rain"),
    ):
        with pytest.raises(ValueError, match=remark):
            read_bif(bif(tmp_path, broken))


# ---------------------------------------------------------------- contexts


@pytest.mark.parametrize("name", SHIPPED)
def test_contexts_fill_the_bins_and_their_probabilities_are_exact(name):
    network, about = load_network(name)
    known = spread_contexts(network, about)
    filled = np.bincount(known.bin, minlength=20)
    assert (filled[:19] >= 8).all()  # each bin but, of diabetes, the last
    assert filled.max() <= 60
    assert (np.diff(known.posterior) >= 0).all()
    some = np.random.default_rng(0).choice(len(known), 40, replace=False)
    again = network.posterior([about.target], known.evidence[some])[:, about.present]
    assert np.allclose(known.posterior[some], again, rtol=0, atol=1e-12)
    # The law of iterated expectation holds, and z matters.
    expected = (known.part * known.within).sum(axis=1)
    assert np.allclose(expected, known.posterior, rtol=0, atol=1e-12)
    assert np.abs(known.within - known.posterior[:, None]).mean() > 0.03
    for j in range(known.part.shape[1]):
        told = known.evidence[some].copy()
        told[:, network.position(about.auxiliary)] = j
        within = network.posterior([about.target], told)[:, about.present]
        assert np.allclose(known.within[some, j], within, rtol=0, atol=1e-11)
    for name in (about.target, about.auxiliary):
        assert (known.evidence[:, network.position(name)] == UNTOLD).all()


CASES = "sex,age,smoker,ill\n" + "".join(
    f"{sex},{age},{smoker},{ill}\n"
    for sex in ("male", "female")
    for age in ("old", "young")
    for smoker in ("no", "yes")
    for ill in ("no", "yes")
    for _ in range(30)
)
WORDS = """
person = "traveller"
condition = "have caught the cold"
[says.sex]
male = "is a man"
[says.age]
old = "is past sixty"
young = "is below sixty"
"""


def test_the_words_of_a_network_of_ones_own_stand_beside_its_file(tmp_path):
    file = tmp_path / "cases.csv"
    file.write_text(CASES, encoding="utf-8")
    how = {"target": "ill", "edges": (("sex", "ill"), ("age", "ill")), "minimum_support": 1}
    _, plain = load_network(str(file), **how)
    assert plain.person == "person"
    assert "has sex = male" in plain.says["sex"]
    beside = tmp_path / "cases.csv.words.toml"
    beside.write_text(WORDS, encoding="utf-8")
    network, words = load_network(str(file), **how)  # the file is seen although it is new
    assert (words.person, words.condition) == ("traveller", "have caught the cold")
    states = network.nodes[network.position("age")].states
    told = dict(zip(states, words.says["age"], strict=True))
    assert told == {"old": "is past sixty", "young": "is below sixty"}
    assert set(words.says["sex"]) == {"is a man", "has sex = female"}
    assert words.says["smoker"] == plain.says["smoker"]
    for wrong, said in (("says.sex.other = 'x'", "state"), ("says.size.big = 'x'", "size"),
                        ("colour = 'x'", "entry"), ("x = = 1", "TOML")):  # fmt: skip
        beside.write_text(wrong, encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            load_network(str(file), **how)
