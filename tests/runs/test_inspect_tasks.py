"""Environments as tasks of Inspect's: the same sessions, and the same record out of the log."""

import gc
import json
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")
from fault_server import FaultServer, last_letter
from inspect_ai import eval as eval_task
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_tasks import evaluate

from knownminds.agents import RescorlaWagnerDual, play
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.llm_adapters import Reply, Usage
from knownminds.llm_adapters.known_agents.serve import Served
from knownminds.llm_adapters.runs.inspect_model import _output
from knownminds.llm_adapters.runs.inspect_tasks import TASKS, read_inspect_log, reply_of
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.validation.cli import main


def mind():
    [theta] = RescorlaWagnerDual.parameters.draw(np.random.default_rng(5), 1)
    return RescorlaWagnerDual.from_theta(theta)


def test_a_known_agent_lives_the_same_sessions_in_a_task_as_on_the_direct_path(tmp_path):
    environment = InstrumentalLearning(n_visits=4)
    task = TASKS["instrumental_learning"](sessions=3, seed=11, n_visits=4)
    with Served(environment, mind(), seed=11, address=RUN) as served:
        log = evaluate(task, served.base_url, tmp_path)
        assert served.calls == 3 * environment.n_trials
    assert log.status == "success"
    frame = read_inspect_log(log.location).frame
    elsewhere = 0
    for i in range(3):
        session = frame[frame["session"] == str(i)]
        direct = play(mind(), environment, 11, *RUN, i).frame
        for column in ("context", "first", "action", "reward", "outcome"):
            assert session[column].tolist() == direct[column].tolist()
        # and the test can fail: another seed is another session
        other = play(mind(), environment, 12, *RUN, i).frame
        elsewhere += session["action"].tolist() != other["action"].tolist()
    assert elsewhere == 3


def test_a_session_that_fails_in_its_middle_keeps_the_trials_before(tmp_path):
    task = TASKS["instrumental_learning"](sessions=2, seed=11, n_visits=1)
    with FaultServer(last_letter, script=["ok", "ok", "500"]) as server:
        log = evaluate(
            task, server.address["openai"], tmp_path, max_retries=0, max_samples=1,
            fail_on_error=False,
        )  # fmt: skip
        assert len(server.calls) == 3 + 4
    frame = read_inspect_log(log.location).frame
    assert frame.groupby("session").size().to_dict() == {"0": 2, "1": 4}
    assert set(frame["outcome"]) == {"ok"}


def test_logs_become_a_table_at_the_command_line_with_their_outcomes_counted(tmp_path, capsys):
    def imported(source, out="t.parquet"):
        code = 0
        try:
            main(["import", str(source), "--out", str(tmp_path / out), "--json"])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    place = InstrumentalLearning(n_visits=1)
    said = ["I cannot answer that.", "", "any of them"]
    script = [ModelOutput.from_content("mockllm/model", text) for text in said * 4]
    for output in script:
        output.usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        [log] = eval_task(
            TASKS["instrumental_learning"](sessions=2, seed=11, n_visits=1),
            model=get_model("mockllm/model", custom_outputs=script, memoize=False),
            display="none",
            log_dir=str(tmp_path / "logs"),
            log_level="error",
            log_realtime=False,
            max_samples=1,
            reasoning_effort="low",
        )
        gc.collect()
    # A log as `eval` returns it is read while it is written, see conftest.py.
    write_eval_log(read_eval_log(log.location), str(tmp_path / "logs" / "same.json"))
    logs = sorted((tmp_path / "logs").iterdir())
    assert sorted(file.suffix for file in logs) == [".eval", ".json"]
    for log in logs:
        code, told, err = imported(log)
        assert code == 0, err
        counts = json.loads(told)["outcomes"]
        assert sum(counts.values()) == 2 * place.n_trials
        assert set(counts) == {"refused", "empty", "malformed"}
        frame = Trials.load(tmp_path / "t.parquet").frame
        assert set(frame["model"]) == {"mockllm/model?reasoning_effort=low"}
        assert frame["action"].isna().all()
        assert frame["raw_text"].fillna("").tolist()[:3] == said
        assert frame["input_tokens"].tolist() == [5] * 8
    code, _, err = imported(tmp_path / "logs", "all.csv")
    assert code == 2  # twice the same sessions
    assert "A trial stands once" in err
    for name, text in (("a.json", '{"version": 2}'), ("b.json", "{"), ("c.eval", "none")):
        (tmp_path / name).write_text(text)
        code, _, err = imported(tmp_path / name)
        assert (code, len(err.strip().splitlines())) == (2, 1), err
        assert f"{name} is no log of Inspect's" in err


KILLED = """
import sys
from inspect_ai import eval
from inspect_ai.model import get_model
import knownminds.validation.benchmarks.inspect_cells as cells

url, folder, logs, *caps = sys.argv[1:]
arguments = dict(word.split("=") for word in caps)
model = get_model("knownminds/openai/m", base_url=url, ledger=folder, memoize=False, **{
    name: int(most) for name, most in arguments.items()
})
task = cells.TASKS["instrumental_learning"](sessions=2, seed=11, n_visits=1)
[log] = eval(task, model=model, display="none", log_dir=logs, log_level="error", max_samples=1)
print(log.status, log.location)
"""


def test_an_evaluation_through_our_ledger_that_is_killed_pays_for_nothing_twice(tmp_path):
    def evaluated(*caps):
        words = [sys.executable, "-P", "-c", KILLED, server.address["openai"], tmp_path / "ledger"]
        started.append(subprocess.Popen(list(map(str, [*words, tmp_path / "logs", *caps])),
                                        stdout=subprocess.PIPE, text=True))  # fmt: skip
        said, _ = started[-1].communicate()
        return (started[-1].returncode, *said.split())

    def kill_at_the_fourth(call):
        if call.number == 3:
            started[-1].kill()
        return "ok"

    started = []
    n = 2 * InstrumentalLearning(n_visits=1).n_trials
    with FaultServer(last_letter, script=kill_at_the_fourth) as server:
        assert evaluated()[0] == -signal.SIGKILL
        code, status, *_ = evaluated("calls=6")  # 4 of before, and 2 more
        assert (code, status) == (0, "error")
        assert len(server.calls) == 6
        code, status, log = evaluated()
        assert (code, status) == (0, "success")
    # The fourth was under way at the kill, and is the only one that is asked again.
    assert len(server.calls) == n + 1
    frame = read_inspect_log(log).frame
    assert len(frame) == n
    assert set(frame["outcome"]) == {"ok"}


def test_inspect_hears_of_an_answer_that_is_not_whole_and_what_it_tells_counts_the_dearer():
    for word, theirs in (("stop", "stop"), ("", "stop"), ("length", "max_tokens"),
                         ("pause_turn", "unknown")):  # fmt: skip
        assert _output(Reply("8", word), "m").stop_reason == theirs
    output = ModelOutput.from_content("m", "8", stop_reason="unknown")
    output.usage = ModelUsage(input_tokens=9, output_tokens=2, total_tokens=911)
    reply = reply_of(output)
    assert (reply.finish_reason, reply.usage) == ("unknown", Usage(9, 902))
