"""Environments as tasks of Inspect's: the same sessions, and the same record out of the log."""

import asyncio
import gc
import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")
pytest.importorskip("openai")
from fault_server import FaultServer, last_letter
from inspect_ai import Task
from inspect_ai import eval as eval_task
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_tasks import evaluate

from knownminds.agents import Contaminants, RescorlaWagnerDual, play
from knownminds.environments import ENVIRONMENTS, InstrumentalLearning, Trials
from knownminds.llm_adapters import ModelChanged, Synthetic, run_sessions
from knownminds.llm_adapters.known_minds.serve import Served
from knownminds.llm_adapters.runs.inspect_tasks import TASKS, read_inspect_log, session_task
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.validation.cli import main

WISHES = Contaminants(refusal=0.15, malformed=0.15)


def mind():
    [theta] = RescorlaWagnerDual.parameters.draw(np.random.default_rng(5), 1)
    return RescorlaWagnerDual.from_theta(theta)


def direct_record(environment, n, seed, contaminants=None):
    one = Synthetic(mind(), environment, seed, *RUN, contaminants=contaminants)
    return asyncio.run(run_sessions(one, environment, n, seed, address=RUN))


def values_of(log):
    return {score.name: score.metrics["mean"].value for score in log.results.scores}


def test_a_known_mind_lives_the_same_sessions_in_a_task_as_on_the_direct_path(tmp_path):
    environment = InstrumentalLearning(n_visits=4)
    task = TASKS["instrumental_learning"](sessions=3, seed=11, n_visits=4)
    with Served(environment, mind(), seed=11, address=RUN) as served:
        log = evaluate(task, served.base_url, tmp_path)
        assert served.calls == 3 * environment.n_trials
    assert log.status == "success"
    frame = read_inspect_log(log.location).frame
    elsewhere = 0
    for i in range(3):
        session = frame[frame["subject"] == str(i)]
        direct = play(mind(), environment, 11, *RUN, i).frame
        for column in ("context", "first", "action", "reward", "outcome"):
            assert session[column].tolist() == direct[column].tolist()
        # and the test can fail: another seed is another session
        other = play(mind(), environment, 12, *RUN, i).frame
        elsewhere += session["action"].tolist() != other["action"].tolist()
    assert elsewhere == 3


@pytest.mark.parametrize(
    "settings", [{}, {"history": "chat", "reasoning": "chain_of_thought"}], ids=["told", "chat"]
)
def test_the_record_in_the_log_is_that_of_a_run_of_our_own(tmp_path, settings):
    environment = InstrumentalLearning(n_visits=4, **settings)
    task = TASKS["instrumental_learning"](sessions=3, seed=11, n_visits=4, **settings)
    with Served(environment, mind(), seed=11, address=RUN, contaminants=WISHES) as served:
        log = evaluate(task, served.base_url, tmp_path)
    trials = read_inspect_log(log.location)
    ours = direct_record(environment, 3, 11, WISHES)
    assert set(ours.frame["outcome"]) == {"ok", "refused", "malformed"}
    assert list(trials.frame) == list(ours.frame)
    for column in ours.frame.columns.drop(["model", "model_served"]):
        assert trials.frame[column].equals(ours.frame[column]), column
    assert set(trials.frame["model"]) == {"openai-api/ours/known-mind"}
    # The scores are the shares in the record, with nothing filled in.
    values = values_of(log)
    for outcome in ("ok", "refused", "malformed", "truncated", "empty", "error"):
        assert values[outcome] == pytest.approx((ours.frame["outcome"] == outcome).mean())
    means = ours.frame.groupby("subject")["reward"].mean()
    assert values["reward"] == pytest.approx(means.mean())
    assert values["lived"] == 1.0
    for sample in log.samples:
        kept = sample.scores["outcomes"].metadata["trials"]
        own = ours.frame[ours.frame["subject"] == str(sample.id)]
        assert [row["outcome"] for row in kept] == own["outcome"].tolist()


def test_the_viewer_shows_each_turn(tmp_path):
    environment = InstrumentalLearning(n_visits=2, history="chat")
    task = TASKS["instrumental_learning"](sessions=1, seed=11, n_visits=2, history="chat")
    with Served(environment, mind(), seed=11, address=RUN) as served:
        log = evaluate(task, served.base_url, tmp_path)
    [sample] = log.samples
    n = environment.n_trials
    assert [m.role for m in sample.messages] == ["user", "assistant"] * n
    assert sample.messages[0].text == sample.input[0].text
    assert sum(event.event == "model" for event in sample.events) == n
    names = [event.name for event in sample.events if event.event == "span_begin"]
    assert [name for name in names if name.startswith("trial")] == [
        f"trial {t + 1}" for t in range(n)
    ]


def test_every_environment_is_a_task_with_its_settings_as_arguments():
    from inspect_ai._util.registry import registry_info

    assert set(TASKS) == set(ENVIRONMENTS)
    for name, kind in ENVIRONMENTS.items():
        info = registry_info(TASKS[name])
        assert info.name.removeprefix("knownminds/") == name
        first, own = info.metadata["params"][:3], info.metadata["params"][3:]
        assert first == ["sessions", "seed", "session_seed"]
        assert sorted(own) == sorted(kind().settings)
        assert [s.id for s in TASKS[name](sessions=2).dataset] == [0, 1]
    assert len(TASKS["instrumental_learning"](sessions=5, n_visits=1).dataset) == 5
    with pytest.raises(ValueError, match="n_visits"):
        TASKS["instrumental_learning"](n_visits=0)
    with pytest.raises(ValueError, match="at least 1 session"):
        TASKS["instrumental_learning"](sessions=0)


def test_an_evaluation_finds_the_tasks_by_name(tmp_path):
    # In a process of its own, away from the source, where nothing has been imported before.
    code = (
        "from importlib.metadata import entry_points; import inspect_ai; "
        "assert entry_points(group='inspect_ai', name='knownminds'), 'no entry point'; "
        "inspect_ai.eval('knownminds/instrumental_learning', model='none/none', display='none', "
        "limit=0, log_dir='.', task_args={'sessions': 1, 'n_visits': 1})"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    if "no entry point" in run.stderr:
        pytest.skip("knownminds was installed before it had an entry point for Inspect")
    print(run.stdout[-3000:], run.stderr[-3000:])
    [file] = tmp_path.glob("*.eval")
    log = read_eval_log(str(file), header_only=True)
    assert (log.eval.task, log.eval.task_args["n_visits"]) == (
        "knownminds/instrumental_learning",
        1,
    )


def test_only_environments_that_a_log_can_name_become_tasks():
    class Own(InstrumentalLearning):
        pass

    with pytest.raises(ValueError, match="listed in ENVIRONMENTS"):
        session_task(Own())


def test_a_session_that_fails_in_its_middle_keeps_the_trials_before(tmp_path):
    task = TASKS["instrumental_learning"](sessions=2, seed=11, n_visits=1)
    with FaultServer(last_letter, script=["ok", "ok", "500"]) as server:
        log = evaluate(
            task, server.address["openai"], tmp_path, max_retries=0, max_samples=1,
            fail_on_error=False,
        )  # fmt: skip
        assert len(server.calls) == 3 + 4
    frame = read_inspect_log(log.location).frame
    assert frame.groupby("subject").size().to_dict() == {"0": 2, "1": 4}
    assert set(frame["outcome"]) == {"ok"}


def test_what_inspect_sends_again_is_counted(tmp_path):
    task = TASKS["instrumental_learning"](sessions=1, seed=11, n_visits=1)
    with FaultServer(last_letter, script=["ok", "429_seconds"], retry_after=0.1) as server:
        log = evaluate(task, server.address["openai"], tmp_path, max_retries=3)
        assert len(server.calls) == 5
    assert read_inspect_log(log.location).frame["attempt"].tolist() == [1, 2, 1, 1]


def test_a_prompt_that_is_not_taken_is_no_answer(tmp_path):
    # Inspect makes an answer of this 400, which stands in no one's mouth.
    task = TASKS["instrumental_learning"](sessions=1, seed=11, n_visits=1)
    complaint = "A input length"
    with FaultServer(last_letter, script=["ok", "400"], complaint=complaint) as server:
        log = evaluate(task, server.address["openai"], tmp_path, max_retries=0)
    frame = read_inspect_log(log.location).frame
    assert frame["outcome"].tolist() == ["ok", "error", "ok", "ok"]
    assert frame["action"].isna().tolist() == [False, True, False, False]
    assert values_of(log)["error"] == 0.25


def test_another_model_in_the_middle_is_another_participant(tmp_path):
    task = TASKS["instrumental_learning"](sessions=2, seed=11, n_visits=1)
    with FaultServer(last_letter, script=["ok"] * 4 + ["model_changed"] * 4) as server:
        log = evaluate(task, server.address["openai"], tmp_path, max_samples=1)
    with pytest.raises(ModelChanged, match="two participants"):
        read_inspect_log(log.location)
    with FaultServer(last_letter, script=["ok", "model_changed"]) as server:
        log = evaluate(
            TASKS["instrumental_learning"](sessions=1, n_visits=1),
            server.address["openai"],
            tmp_path,
        )
        assert len(server.calls) == 2
    assert log.status == "error"


def test_epochs_are_sessions_of_one_subject(tmp_path):
    task = TASKS["instrumental_learning"](sessions=2, seed=11, n_visits=1)
    with Served(InstrumentalLearning(n_visits=1), mind(), seed=11, address=RUN) as served:
        log = evaluate(task, served.base_url, tmp_path, epochs=2)
    trials = read_inspect_log(log.location)
    assert (trials.n_subjects, trials.n_sessions) == (2, 4)


def test_without_a_session_seed_none_is_sent(tmp_path):
    for asked, sent in ((True, [0, 1]), (False, [None])):
        task = TASKS["instrumental_learning"](sessions=2, n_visits=1, session_seed=asked)
        with FaultServer(last_letter) as server:
            evaluate(task, server.address["openai"], tmp_path)
        assert sorted({c.body.get("seed") for c in server.calls}, key=str) == sent


def test_a_log_of_other_words_is_refused(tmp_path):
    task = TASKS["instrumental_learning"](sessions=1, seed=11, n_visits=1)
    with Served(InstrumentalLearning(n_visits=1), mind(), seed=11, address=RUN) as served:
        log = evaluate(task, served.base_url, tmp_path)
    with pytest.raises(ValueError, match="another question on trial 0 of session 0"):
        read_inspect_log(
            log.location, InstrumentalLearning(n_visits=1, history="chat", reasoning="step_back")
        )
    same = read_inspect_log(log.location, InstrumentalLearning(n_visits=1))
    assert len(same) == 4
    changed = read_eval_log(log.location)
    changed.samples[0].metadata["seed"] = 12
    write_eval_log(changed, str(tmp_path / "changed.json"))
    with pytest.raises(ValueError, match="another question"):
        read_inspect_log(tmp_path / "changed.json")


def test_a_log_of_something_else_is_refused(tmp_path):
    with FaultServer(last_letter) as server:
        log = evaluate(Task(dataset=[Sample(input="E or N?")]), server.address["openai"], tmp_path)
    with pytest.raises(ValueError, match="holds no trials"):
        read_inspect_log(log.location)
    with pytest.raises(ValueError, match="there is none"):
        read_inspect_log(tmp_path / "none.eval")


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
        )
        gc.collect()
    # A log as `eval` returns it is read while it is written, see tests/conftest.py.
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
