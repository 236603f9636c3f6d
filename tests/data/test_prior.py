"""Behaviour under priors: what minds do is counted anew, and the command says it."""

import json
from types import SimpleNamespace

import pytest
from claims import check
from claims.prior import REPORT

from knownminds import prior
from knownminds.agents import AGENTS, simulate
from knownminds.environments import make, session_stream
from knownminds.validation.data.prior import _KEY, read_prior
from knownminds.validation.data.prior_page import prior_page


def test_what_minds_of_the_prior_do_is_what_their_trials_show():
    place, model = make("instrumental_learning", n_visits=6), AGENTS["rescorla_wagner"]
    found = prior(place, model, minds=40, seed=3)
    theta = model.parameters.draw(session_stream(3, _KEY), 40)
    frame = simulate(model, theta, place, 3, address=(_KEY,)).frame
    before = frame.groupby(["subject", "context"], sort=False)["action"].shift()
    stayed = (frame["action"] == before)[before.notna()].astype(float)
    means = {
        "learning curve": frame.groupby("subject")["reward"].mean().to_numpy(),
        "staying after outcomes": stayed.groupby(frame["subject"]).mean().to_numpy(),
    }
    assert set(means) <= set(found.ranges)
    content = json.loads(found.to_json())
    page = prior_page(found)
    texts = [*page.sentences, *[caption for caption, _ in page.figures]]
    check(REPORT, texts, SimpleNamespace(content=content, means=means))


def test_the_command_leaves_a_page_and_reads_back_the_same(knownminds, tmp_path):
    words = ["prior", "reversal_learning", "--model", "rescorla_wagner", "--minds", 20]
    code, out, err = knownminds(*words, "--trials", 30, "--out", tmp_path / "p")
    assert code == 0, err
    assert out.startswith("20 minds were drawn from the priors of rescorla_wagner")
    assert (tmp_path / "p" / "report.html").exists()
    again = read_prior(tmp_path / "p")
    assert str(again) == out.strip()
    assert {panel.title for panel in again.panels} >= {"learning curve", "after a reversal"}
    code, _, err = knownminds(*words, "--set", "alpha=1.5")
    assert (code, "alpha" in err) == (2, True)


def test_what_cannot_be_lived_is_refused():
    with pytest.raises(ValueError, match="learns from rewards"):
        prior("coins", "rescorla_wagner")
    with pytest.raises(ValueError, match="at least 2"):
        prior("reversal_learning", "rescorla_wagner", minds=1)
