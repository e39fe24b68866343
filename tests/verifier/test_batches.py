"""Runs that are judged together: which ones, and that none of them takes another along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.stories import clean
from verifier import verify_runs
from verifier.batches import MOST_BYTES, MOST_RUNS, Examined, Judged, batched
from verifier.closing.closing import gather
from verifier.evidence.run_directory import RunDirectory
from verifier.facts import Audit, Facts
from verifier.spark.sessions import Sessions
from verifier.verdict import Verdict


class Sized(RunDirectory):
    def size_bytes(self) -> int:
        return int(self.path.name)


def sizes(*given: int) -> list[list[int]]:
    batches = batched([Sized(Path(f"/{number}/{size}")) for number, size in enumerate(given)])
    assert [each.size_bytes for each in batches] == [
        sum(one.size_bytes() for one in each.directories) for each in batches
    ]
    return [[one.size_bytes() for one in each.directories] for each in batches]


def test_small_runs_are_judged_together() -> None:
    """In their order, as many and as large as fit; a large one alone."""
    assert sizes() == []
    assert sizes(1, 2, 3) == [[1, 2, 3]]
    assert sizes(1, MOST_BYTES - 1, 1, MOST_BYTES + 1, 5) == [[1, MOST_BYTES - 1], [1], [MOST_BYTES + 1], [5]]
    assert list(map(len, sizes(*[1] * (2 * MOST_RUNS + 1)))) == [MOST_RUNS, MOST_RUNS, 1]


Answer = Callable[[Sequence[Examined]], list[Judged]]


def found_nothing(runs: Sequence[Examined]) -> list[Judged]:
    return [
        Judged(each.directory, each.run, each.evidence, Audit(Facts(), ()), gather(each.directory, each.run))
        for each in runs
    ]


def failing(runs: Sequence[Examined]) -> list[Judged]:
    """One question could not be answered: no one knows of which run."""
    return [replace(each, found=replace(each.found, failures={"duplicate": "why"})) for each in found_nothing(runs)]


def broken(runs: Sequence[Examined]) -> list[Judged]:
    raise ValueError("one of them")


@pytest.mark.parametrize(("answer", "alone"), [(found_nothing, [1]), (failing, [0, 1, 2]), (broken, [0, 1, 2])])
def test_who_cannot_be_judged_with_the_others_is_judged_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer, alone: list[int]
) -> None:
    """A run that cannot be read; or all of them. They are told in their order, and locked by no one afterwards."""
    runs = [clean().write(tmp_path / name) for name in ("0", "1", "2")]
    runs[1].run_json.write_text("{}")
    asked: list[int] = []
    told: list[tuple[str, bool]] = []

    def verify(directory: RunDirectory, sessions: Sessions, progress: object) -> Verdict:
        with verify_runs._alone(directory, sessions):
            asked.append(int(directory.path.name))
        raise OSError("judged alone")

    monkeypatch.setattr(verify_runs, "_verify", verify)
    monkeypatch.setattr(verify_runs, "_audit", lambda found, _sessions, _progress: answer(found))
    verify_runs.verify_all(runs, told=lambda run, outcome: told.append((run.path.name, isinstance(outcome, Verdict))))
    assert asked == alone
    assert told == [(str(number), number not in alone) for number in range(3)]
