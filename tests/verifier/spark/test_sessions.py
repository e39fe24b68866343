"""Whose a run directory is while a session lives: nobody else judges a run that has Spark's files in it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from verifier import verify_runs
from verifier.evidence.outputs import SCRATCH
from verifier.evidence.run_directory import RunDirectory
from verifier.spark import session
from verifier.spark.sessions import Sessions
from verifier.verify_runs import VerifierAtWork


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A session without Spark; how each one ended."""
    how: list[str] = []

    def start(scratch: Path, *_: Any, **__: Any) -> Any:
        scratch.mkdir(parents=True, exist_ok=True)
        (scratch / "spark").write_text("its files")
        answers = SimpleNamespace(range=lambda _: SimpleNamespace(count=lambda: 1))
        return SimpleNamespace(spark=answers, close=lambda: how.append("closed"), abort=lambda: how.append("killed"))

    monkeypatch.setattr(session, "start", start)
    return how


def is_free(directory: RunDirectory) -> bool:
    """Whether another verifier could judge this directory now."""
    descriptor = os.open(directory.path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def judge(directory: RunDirectory, sessions: Sessions) -> None:
    """What a verifier does with its run, without the judging."""
    with verify_runs._alone(directory, sessions):
        sessions.get(directory.path / SCRATCH, 0)
        assert not is_free(directory)


def test_the_run_with_the_files_of_the_session_is_held_until_it_ends(tmp_path: Path, ended: list[str]) -> None:
    """Of several runs the first has them: it is held while the others are judged, each of which is free at its end."""
    first, second = (RunDirectory(tmp_path / name) for name in ("first", "second"))
    for each in (first, second):
        each.path.mkdir()
    with Sessions("local[1]") as sessions:
        judge(first, sessions)
        judge(second, sessions)
        assert not is_free(first) and is_free(second)
        assert (first.path / SCRATCH / "spark").exists()
        with pytest.raises(VerifierAtWork, match="another verifier judges"), Sessions("local[1]") as others:
            judge(first, others)
        assert (first.path / SCRATCH / "spark").exists(), "the other one removed the files of a living session"
        judge(first, sessions)
        assert not is_free(first)
    assert is_free(first) and not (first.path / SCRATCH).exists() and ended == ["closed"]


def test_a_session_that_is_killed_gives_its_run_back(tmp_path: Path, ended: list[str]) -> None:
    """What one that fails left is gone with it."""
    directory = RunDirectory(tmp_path)

    def fail() -> None:
        with Sessions("local[1]") as sessions:
            judge(directory, sessions)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert is_free(directory) and not (directory.path / SCRATCH).exists() and ended == ["killed"]
