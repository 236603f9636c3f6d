"""A run in several wordings, behind a system message, with settings that only some models take."""

import json

import pandas as pd
import pytest
from fault_server import FaultServer, by_hash

from knownminds.environments import Trials
from knownminds.inference import split_variance
from knownminds.llm_adapters.runs.ledger import Ledger, has_run

RUN = ("run", "instrumental_learning", "--llm", "openai:m", "--sessions", "2")
SMALL = ("--set", "n_visits=2")


@pytest.mark.long
def test_paraphrases_are_runs_whose_trials_say_their_wording(tmp_path, knownminds):
    with FaultServer(by_hash) as server:
        address = ("--base-url", server.address["openai"], "--out", str(tmp_path / "run"))
        code, _, told = knownminds(*RUN, *SMALL, *address, "--paraphrases", "3")
        assert code == 0, told
        calls = len(server.calls)
        assert knownminds(*RUN, *SMALL, *address, "--paraphrases", "3")[0] == 0
        assert len(server.calls) == calls == 3 * 2 * 8  # resumed: nothing is asked again
    folders = {
        name: tmp_path / "run" / name for name in ("shipped", "paraphrase_2", "paraphrase_3")
    }
    frames = {
        name: Trials.load(folder / "trials.parquet").frame for name, folder in folders.items()
    }
    for name, frame in frames.items():
        assert set(frame["template"]) == {name}
    whole = pd.concat(frames.values())
    assert whole["template_hash"].nunique() == 3
    assert whole["prompt_hash"].nunique() == len(whole)
    split = split_variance(whole, "action")
    assert (split.models, split.templates, split.sessions) == (1, 3, 6)


def test_a_cap_holds_over_all_wordings(tmp_path, knownminds):
    with FaultServer(by_hash) as server:
        address = ("--base-url", server.address["openai"], "--out", str(tmp_path / "run"))
        capped = ("--paraphrases", "3", "--cap", "calls=20", "--json")
        code, said, _ = knownminds(*RUN, *SMALL, *address, *capped)
        assert code != 0
        assert len(server.calls) == 20
    told = json.loads(said)["wordings"]  # one object, also of a run that was cut short
    assert list(told) == ["shipped", "paraphrase_2", "paraphrase_3"]
    ended = {
        name: (one["sessions_ended"], sum(one["calls"].values())) for name, one in told.items()
    }
    assert ended["shipped"] == (2, 16)
    assert sum(calls for _, calls in ended.values()) == 20
    with Ledger.read(tmp_path / "run" / "shipped") as ledger:
        assert sum(one.calls for one in ledger.spent().values()) == 16
    assert not has_run(tmp_path / "run")
