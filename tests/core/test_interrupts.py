"""Ctrl-C ends a command with exit code 130 and a line that says what is kept."""

import ctypes
import signal
import time

import pytest

from knownminds.validation import listed
from knownminds.validation.cli import main
from knownminds.validation.pages import result_page

STUDY = ("recover", "instrumental_learning", "--model", "rescorla_wagner", "--subjects", "4")


def ended(*words):
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code or 0


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_a_study_keeps_its_parts_and_no_page_that_is_not_whole(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "study"
    monkeypatch.setattr(result_page, "picture", lambda figure, kind: b"<svg></svg>")
    monkeypatch.setattr(result_page, "write_bytes", interrupt)  # after some tables were written
    earlier = set()
    for _ in range(2):
        assert ended(*STUDY, "--trials", "24", "--out", str(folder)) == 130
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.splitlines() == [
            f"knownminds: stopped. What was finished is kept in {folder}; the same command goes on."
        ]
        there = {file.name for file in folder.iterdir()}
        assert {"parts", "study.json"} <= there
        assert there & {"report.html", "result.json", "tables"} == earlier
        earlier = {"report.html", "result.json"}  # which stays, as no other is whole
        for name in earlier:
            (folder / name).write_text("{}")


def test_nothing_is_kept_of_what_has_no_folder(capsys, monkeypatch):
    monkeypatch.setattr(listed, "compute", interrupt)
    assert ended("list") == 130
    assert capsys.readouterr().err == (
        "knownminds: stopped. Nothing new is kept; the same command begins where this one did.\n"
    )


def test_an_interrupt_that_cannot_be_raised_where_it_comes_comes_again(monkeypatch):
    @ctypes.CFUNCTYPE(None)
    def callback():  # as LLVM calls Python
        signal.raise_signal(signal.SIGINT)

    def show(*_, **__):
        callback()
        time.sleep(20)

    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(listed, "compute", show)
        began = time.monotonic()
        assert ended("list") == 130
        assert time.monotonic() - began < 20
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_compiled_code_hands_on_as_another_error_is_one(capsys, monkeypatch):
    def hand_on(*_, **__):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stopped:
            inner = SystemError("returned a result with an exception set")
            inner.__context__ = stopped
            raise SystemError("and so did its caller") from inner

    monkeypatch.setattr(listed, "compute", hand_on)
    assert ended("list") == 130
    assert "stopped. Nothing new is kept" in capsys.readouterr().err
