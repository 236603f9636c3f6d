from pathlib import Path

import pytest

from knownminds.agents import Agent, Model
from knownminds.environments import ENVIRONMENTS, Environment
from knownminds.inference import MEASURES
from knownminds.validation.gates import sources
from knownminds.validation.gates.gates import recommendation, stored_gates
from knownminds.validation.gates.sources import sources_of

LEARNER = ("recovery", "forgetting_learner", "instrumental_learning")
# File, what stands there, what it becomes, and what is older then.
EDITS = {
    "a docstring": ("learners.py", "Values step toward rewards", "Values go to rewards", ()),
    "a comment": ("learners.py", "class ForgettingLearner", "# New.\nclass ForgettingLearner", ()),
    "a description": ("learners.py", "forgotten at each choice", "lost at each choice", ()),
    "a type": (
        "learners.py",
        "def update(self, trial: Any)",
        "def update(self, trial: object)",
        (),
    ),
    "layout": ("learners.py", "1 - self.phi", "(1 - self.phi)", ()),
    "a number": ("learners.py", "1 - self.phi", "2 - self.phi", ("model",)),
    "a prior": ("learners.py", "mean=-1.5", "mean=-1.4", ("model",)),
    "what it extends": ("learners.py", "self.last[trial.action] = 1", "pass", ("model",)),
    "its neighbour": ("rescorla_wagner.py", "class ", "one = 1\nclass ", ()),
    "the base of all": ("agent.py", "class Agent", "one = 1\nclass Agent", ()),
    "a design": (
        "instrumental_learning.py",
        '"equal pairs": ((0, 0)',
        '"equal pairs": ((0, 1)',
        ("experiment",),
    ),
}


def edited(monkeypatch, file, old, new):
    """Read every source as it is, but for one file's edit."""
    read = Path.read_text

    def text(path, *args, **kwargs):
        whole = read(path, *args, **kwargs)
        if path.name != file:
            return whole
        assert old in whole
        return whole.replace(old, new)

    monkeypatch.setattr(Path, "read_text", text)


@pytest.fixture
def anew():
    def clear():
        sources._hash_of.cache_clear()
        sources._definitions.cache_clear()

    clear()
    yield clear
    clear()


@pytest.mark.parametrize("edit", EDITS)
def test_a_gate_goes_by_what_its_members_do(edit, monkeypatch, anew):
    *change, older = EDITS[edit]
    before = sources_of(*LEARNER)
    edited(monkeypatch, *change)
    anew()
    after = sources_of(*LEARNER)
    assert tuple(name for name in before if before[name] != after[name]) == older


def test_what_an_experiment_names_in_its_family_counts(monkeypatch, anew):
    kind = ENVIRONMENTS["causal_inference"]
    before = sources._hash_of(kind, Environment)
    edited(monkeypatch, "networks.py", "(1.0 - absent) * kept", "(1.0 - absent) * kept * 1.0")
    anew()
    assert sources._hash_of(kind, Environment) != before


@pytest.mark.parametrize("name", sorted({name for _, name in stored_gates()}))
def test_every_class_of_a_member_is_found(name):
    """A class that is not found would count for nothing."""
    if name in MEASURES:
        kinds = [type(MEASURES[name])]
    else:
        design = recommendation(name)
        kinds = [design.agent, type(design.make())]
    for kind in kinds:
        for one in kind.__mro__:
            own = one.__module__.startswith("knownminds.") and one not in (Agent, Model)
            if own and one.__module__.count(".") > 2:
                assert one.__qualname__ in sources._definitions(one.__module__)
