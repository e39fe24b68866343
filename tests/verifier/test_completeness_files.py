"""Files that cannot be read, that nobody declared, or that are not there: each by what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stories import Story, clean
from tests.verifier.test_completeness import closing, incomplete, without
from tests.verifier.test_verdict import a_run, facts
from verifier.closing.closing import Unreadable, gather
from verifier.completeness import sealed
from verifier.doubts import ALL, EXCUSES, HISTORIES, NOTHING, Doubt, Evidence
from verifier.evidence import seal
from verifier.evidence.run_directory import RunDirectory


def doubts(story: Story, directory: RunDirectory) -> list[Doubt]:
    return incomplete(story.model(), facts(), gather(directory, story.model()))


@pytest.mark.parametrize(
    ("path", "blinds"),
    [
        ("run.json", ALL),
        ("history/producer-1.arrow", HISTORIES),
        ("faults.jsonl", EXCUSES),
        ("leaders.jsonl", EXCUSES),
        ("loadgen/producer-1.series.jsonl", NOTHING),
        ("loadgen/settings.json", NOTHING),
    ],
)
def test_what_cannot_be_read_blinds_by_what_it_is(path: str, blinds: frozenset[Evidence]) -> None:
    """A series accuses nobody and excuses nothing; what would excuse an anomaly does."""
    (doubt,) = sealed.doubts(closing(unreadable=(Unreadable(path, "it is torn"),)))
    assert doubt == Doubt(f"{path} cannot be read: it is torn", blinds)


@pytest.mark.parametrize(
    ("path", "blinds"),
    [
        ("faults.jsonl", EXCUSES),
        ("leaders.jsonl", EXCUSES),
        ("loadgen/producer-1.series.jsonl", NOTHING),
        ("loadgen/settings.json", NOTHING),
    ],
)
@pytest.mark.parametrize("text", ['{"number": []}\n{"torn\n', '{"number": ' + "[" * 100_000 + "]" * 100_000 + "}\n"])
def test_each_of_these_files_is_read(tmp_path: Path, text: str, path: str, blinds: frozenset[Evidence]) -> None:
    """Sealed as it is, so that nothing but what it says is wrong with it."""
    story = clean()
    directory = story.write(tmp_path)
    (tmp_path / path).write_text(text, encoding="utf-8")
    seal.take(directory)
    found = [each for each in doubts(story, directory) if each.reason.startswith(f"{path} cannot be read: ")]
    assert [each.blinds for each in found] == [blinds]


def test_the_record_of_leaders_is_there(tmp_path: Path) -> None:
    """Without it no election excuses anything, and there may have been one."""
    story = clean()
    directory = story.write(tmp_path)
    directory.leaders_jsonl.unlink()
    seal.take(directory)
    assert doubts(story, directory) == [Doubt("leaders.jsonl cannot be read: it is missing", EXCUSES)]


#: Where a file can lie that nobody declared; and whether another seal takes it in.
STRANGERS = {
    "history/stranger.arrow": False,
    "history/notes.txt": False,
    "history/deep/producer-1.arrow": False,
    "loadgen/stranger.series.jsonl": False,
    "loadgen/stranger.status.json": False,
    "loadgen/stranger.log": False,
    "loadgen/stranger.html": False,
    "loadgen/stranger.json": False,
    "loadgen/stranger_stats.csv": False,
    "loadgen/stranger_stats_history.csv": False,
    "loadgen/stranger_failures.csv": False,
    "loadgen/stranger_exceptions.csv": False,
    "loadgen/notes.txt": True,
    "nodes/9/control.jsonl": False,
    "nodes/9/data/t-0/00000000000000000000.log": False,
    "nodes/x/broker.log": False,
    "nodes/1/data/x-0/00000000000000000000.index": False,
    "nodes/1/data/t-7/partition.metadata": False,
    "nodes/1/data/t-0/t-0/00000000000000000000.log": False,
    "nodes/1/backup/t-0/00000000000000000000.log": False,
    "nodes/1/t-0/00000000000000000000.log": False,
    "nodes/1/data/t-0/notes.txt": True,
    "nodes/1/data/00000000000000000000.log": True,
    "nodes/1/stranger.log": True,
}


@pytest.mark.parametrize("path", STRANGERS)
def test_a_file_that_was_not_there_is_told(tmp_path: Path, path: str) -> None:
    """Anywhere among histories, the brokers' data, series and logs: the run is as it was when it was sealed."""
    story = clean()
    directory = story.write(tmp_path)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(b"")
    reasons = [each.reason for each in doubts(story, directory)]
    assert f"{path}: not there when the run was sealed" in reasons


@pytest.mark.parametrize("path", [path for path, is_taken_in in STRANGERS.items() if not is_taken_in])
def test_a_file_of_nobody_is_told_though_it_was_sealed(tmp_path: Path, path: str) -> None:
    """What no declared process, broker or partition left, whoever sealed it."""
    story = clean()
    directory = story.write(tmp_path)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(b"")
    seal.take(directory)
    found = doubts(story, directory)
    whose = [each for each in found if path in each.reason and "nothing that the run declared" in each.reason]
    assert len(whose) == 1, found


def test_a_series_of_another_name_counts_for_nobody(tmp_path: Path) -> None:
    """It would speak for a process whose own series says something else."""
    story = clean()
    directory = story.write(tmp_path)
    own = directory.series_jsonl("producer-1")
    (directory.loadgen_dir / "zzz.series.jsonl").write_text(
        own.read_text().replace('"total_acked": 24', '"total_acked": 9')
    )
    seal.take(directory)
    closed = gather(directory, story.model())
    assert closed.series["producer-1"].total_acked == 24
    assert any("zzz.series.jsonl" in each.reason for each in incomplete(story.model(), facts(), closed))


@pytest.mark.parametrize(
    ("process", "what", "never"),
    [
        ("producer-1", "what was acknowledged", ["nothing was acknowledged", "0 records were", "nothing was sent"]),
        ("final-1", "what was read in the final phase", ["nothing was read", "read nothing"]),
    ],
)
def test_what_a_missing_history_held_was_not_nothing(process: str, what: str, never: list[str]) -> None:
    """It could not be counted; that is said once, and no count is drawn from it."""
    counted = facts(acked=0) if process == "producer-1" else facts(final_read=0, readers=())
    reasons = [each.reason for each in incomplete(a_run(), counted, without(process))]
    assert f"{what} could not be counted: there is no readable history of {process}" in reasons
    assert len(reasons) == 2, reasons
    assert not [reason for reason in reasons for words in never if words in reason]
