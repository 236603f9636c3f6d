"""Every paper's benchmark against local servers, killed in the middle; see paper_demonstration."""

import signal

import pytest

pytest.importorskip("openai")
from paper_demonstration import MODELS, demonstrate

from knownminds.validation.benchmarks.registry import BENCHMARKS


def check(found, questions=None):
    """Nothing that was answered is asked again, and everything has an answer in the end."""
    assert found.killed == -signal.SIGKILL
    assert found.code in (0, 1), found.said  # 1: who sees no pictures leaves cells out
    for model in MODELS:
        # A question may make several trials, as one for a distribution does.
        trials = found.found.cells.groupby("model")["trials"].sum()[f"openai:{model}"]
        assert 0 < found.asked[model] <= trials
        assert questions is None or found.asked[model] == trials == questions
        # What was answered twice was in flight: its answer was on no disk when the power went.
        again = found.answered[model] - found.asked[model]
        assert 0 <= again <= found.unknown[model]
        # Some answers that no ledger held had come, as bytes, and were read from there.
        assert found.later[model] <= found.asked[model] - found.held[model] + again
    cells = found.found.cells.set_index("model")
    refused = cells.loc["openai:refuser"]
    share = refused["refused"].sum() / refused["trials"].sum()
    n = refused["trials"].sum()
    assert abs(share - 0.2) < 4 * (0.16 / n) ** 0.5  # four standard errors
    page = (found.folder / "report.html").read_text(encoding="utf-8")
    assert all(f"openai:{model}</strong> has lived" in page for model in MODELS)


@pytest.mark.long
@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_paper_in_small(name, tmp_path):
    found = demonstrate(name, tmp_path)
    cells = found.found.cells
    check(found)
    blind = cells[(cells["model"] == "openai:blind") & (cells["status"] == "not begun")]
    assert blind["reason"].str.contains("pictures").all()
    assert len(blind) == (30 if name == "magnitudes" else 0)
