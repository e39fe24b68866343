"""A run's histories as operations: what the verifier finds in the export is what it finds in the run."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.stories import Story, clean
from tests.verifier.planted import PLANTED, planted_story
from verifier.evidence.run_directory import RunDirectory
from verifier.operations.export import export_run
from verifier.operations.options import JudgeOptions
from verifier.operations.report import summary_md
from verifier.operations.verify_history import ClientVerdict, judge_file
from verifier.operations.writing import FORMS

#: Checks that runs and histories of operations both have. What failed and was read is phantom there, G1a here.
SHARED = ("lost-write", "duplicate", "inconsistent-offsets", "nonmonotonic-send", "phantom", "unseen")

_LOG_ALONE = "clients were told nothing of it: only the log shows it"
_TAIL = "the log proves the loss; clients know only that what was acknowledged was never read"
_COPY = "a copy also stands behind later values; the log knows that it is the copy that is wrong"
_ONE_READER = "a run compares each final reader with the log; here any reader's poll counts, and the gap is a poll-skip"
_ANY_READER = "a run compares each final reader with the log; here any reader's poll counts, and it had nothing before"

#: Planted runs of losses and copies that a setting permits in one place and not in the other: alike without settings.
_CUT_OFF = (
    "behind a batch that was given up",
    "committed, as a reader was told before the election",
    "above what was committed",
    "committed, as it was told after the election",
    "cut off by an election",
    "one offset below the epoch",
    "further up than a log can have reached",
    "an epoch that nobody saw begin",
    "behind what stands in the epoch",
    "long after the election",
    "by a leader that was cut off",
    "acknowledged soon after the election",
    "by a leader that was killed",
    "while another broker was cut off",
    "by a leader that a peer could not reach",
    "acknowledged one by one",
    "acknowledged at one offset",
    "behind what came again",
    "behind what came again, with one batch in flight",
    "where another that came again stands",
    "handed over after what came again",
    "acknowledged between two elections",
    "cut off by an election that was ordered",
    "cut off before the order, while its fault prepared it",
    "cut off by an election after every order was refused",
    "cut off by an election after a refusal that the journals contradict",
    "cut off by an ordered election before its fault was over",
    "cut off by an election after the fault of an order was over",
    "acknowledged below what stands before two elections",
    "set back from what stands",
    "set forward from what stands",
    "in an epoch that was seen a little late",
    "in an epoch that was seen long after",
)
#: Before it was cut off, a reader was handed it.
_READ_AND_CUT_OFF = (
    "set back by an unclean election",
    "set back long after an unclean election",
    "set forward by an unclean election",
)
_NEVER_STORED = (
    "sent without acknowledgement to who was replaced",
    "sent without acknowledgement before others that stand",
    "sent over a connection that was lost",
    "another stream lost its connection",
    "the connection was lost before",
    "the connection was lost later",
    "sent over a link that was cut until the connection was lost",
    "the link was healed long before",
    "a link was cut and the connection held",
    "sent when its producer was closed",
    "sent well before its producer was closed",
    "a link to who does not lead was cut",
    "a link between brokers was cut",
    "the connection that was lost had carried nothing",
    "only what brokers send was held up",
    "two stretches with two connections",
    "two stretches with one connection",
)
_STORED_AGAIN = (
    "repeated by a retry",
    "more were repeated than the retry had records",
    "four copies by as many retries",
    "four copies by one retry",
    "its neighbors were retried",
    "another stream was retried",
    "sent again after a timeout just then",
    "sent again long before a timeout",
    "one sequence in two epochs",
    "repeated after an answer that was lost",
    "repeated after a timeout of the followers",
    "repeated after too few followers had it",
    "repeated though too few followers were there",
    "repeated after its leader was replaced",
    "repeated after somebody who did not lead",
    "repeated after librdkafka says that too few were there",
    "retried when it had been acknowledged",
)

#: Where definitions differ by nature: the shared checks that only the run has, that only the export has, and why.
#: Batches with attributes that no producer asks for: clients do not see them.
_ODD_BATCHES = (
    "a marker without a sequence", "a poll passes over a marker", "a batch of a transaction",
    "a time of deletion where nothing is compacted", "attributes that mean nothing",
)  # fmt: skip

DIFFERENT: dict[str, tuple[set[str], set[str], str]] = {
    "lost at the tail": ({"lost-write"}, {"unseen"}, _TAIL),
    "lost in the middle": (set(), {"unseen"}, "a value that is lost was never read either"),
    "lost, and acknowledged in the wrong order": (
        {"lost-write"}, {"unseen", "nonmonotonic-send"}, f"{_TAIL}; and a lost value keeps the offset it was told",
    ),
    "skipped by a final reader": ({"unseen"}, set(), _ONE_READER),
    "the sentinel itself is skipped": (set(), {"lost-write"}, "something behind it was read, so it is also lost"),
    "acknowledged behind the sentinel": (
        set(), {"unseen"}, "a run ends at its sentinels; here nothing says that reading was to end before",
    ),
    "stored twice": (set(), {"nonmonotonic-send"}, _COPY),
    "sent again": (set(), {"nonmonotonic-send"}, _COPY),
    "sent again after a timeout": (set(), {"nonmonotonic-send"}, _COPY),
    "repeated without an identity": (set(), {"nonmonotonic-send"}, _COPY),
    "stored three times": (set(), {"nonmonotonic-send"}, _COPY),
    "acknowledged at its second copy": (set(), {"nonmonotonic-send"}, _COPY),
    "acknowledged elsewhere": (
        {"inconsistent-offsets"}, {"duplicate"}, "told one offset, read at another: without a log that is two copies",
    ),
    "read and then nothing": ({"inconsistent-offsets"}, set(), _LOG_ALONE),
    "read from nowhere": ({"inconsistent-offsets"}, set(), _LOG_ALONE),
    "read where it no longer is": ({"inconsistent-offsets"}, set(), _LOG_ALONE),
    "never reserved": ({"phantom"}, set(), "nobody was handed the value; it stands in the log"),
    "a foreign value": ({"phantom"}, set(), "nobody was handed the values; they stand in the log"),
    "failed and yet there": ({"phantom"}, set(), "it was read, and its send failed: that is G1a"),
    **dict.fromkeys(_ODD_BATCHES, ({"phantom"}, set(), _LOG_ALONE)),
    "handed out as garbage": (set(), {"inconsistent-offsets"}, "garbage is one more value at that offset"),
    "a late batch of a former producer": (
        set(), {"nonmonotonic-send"}, "only the log says that another producer wrote the batch",
    ),
    "deleted by nobody": ({"lost-write", "inconsistent-offsets"}, set(), _LOG_ALONE),
    "deleted further than asked for": ({"lost-write", "inconsistent-offsets"}, set(), _LOG_ALONE),
    "deleted on the brokers' own word": ({"lost-write", "inconsistent-offsets"}, set(), _LOG_ALONE),
    "lost and then deleted": (
        set(), {"lost-write", "unseen"}, "a run does not miss what was to be deleted; an export does not know of it",
    ),
    "cut off and then deleted": (
        set(), {"lost-write", "unseen", "inconsistent-offsets"}, "the same, and that acks=1 may lose it",
    ),
    "a compacted topic": (
        set(), {"lost-write", "inconsistent-offsets", "unseen"}, "a run does not judge it: compaction removes values",
    ),
    "a copy below the start of the log": (set(), {"duplicate"}, "both copies were read; the log keeps one"),
    **dict.fromkeys(_CUT_OFF, (set(), {"unseen"}, "a value that was cut off was never read either")),
    **dict.fromkeys(_READ_AND_CUT_OFF, ({"lost-write"}, set(), "for clients a value that was read is not lost")),
    **dict.fromkeys(_NEVER_STORED, ({"lost-write"}, {"unseen"}, _TAIL)),
    **dict.fromkeys(_STORED_AGAIN, (set(), {"nonmonotonic-send"}, _COPY)),
    "a reader passes over what another one read": ({"inconsistent-offsets"}, set(), _LOG_ALONE),
    "a poll passes over a value inside": ({"unseen"}, set(), _ONE_READER),
    "sent after one that has no one place": ({"inconsistent-offsets"}, set(), _LOG_ALONE),
    "a reader that is not handed what its client committed": ({"unseen"}, set(), _ANY_READER),
    "a reader of everything that is not handed what was aborted": ({"unseen"}, set(), _ANY_READER),
    "a bank whose debits were handed over without their credits": ({"unseen"}, set(), _ONE_READER),
}  # fmt: skip


def judged(directory: RunDirectory, form: str = "jsonl", into: Path | None = None) -> ClientVerdict:
    path = (into or directory.path) / f"export.{form}"
    exported = export_run(directory.history_dir)
    path.write_text("".join(FORMS[form](line) + "\n" for line in exported.lines), encoding="utf-8")
    return judge_file(path, JudgeOptions())


def shared(verdict: ClientVerdict) -> set[str]:
    return {name for name in SHARED if verdict.verdict.checks[name].count}


@pytest.mark.parametrize("name", PLANTED)
def test_an_export_shows_what_the_run_shows(
    name: str, stories: dict[str, tuple[Story, RunDirectory]], tmp_path: Path
) -> None:
    """The anomalies that both can have are the same, but for those that clients cannot see or cannot tell apart."""
    found = judged(stories[f"planted: {name}"][1], into=tmp_path)
    in_run = {check for check, _ in PLANTED[name].expected} & set(SHARED)
    only_run, only_export, _why = DIFFERENT.get(name, (set(), set(), ""))
    assert found.verdict.doubts == ()
    assert shared(found) == in_run - only_run | only_export
    assert in_run - shared(found) == only_run
    assert shared(found) - in_run == only_export
    assert all(check.failure is None for check in found.verdict.checks.values())


def test_what_failed_and_was_read_is_aborted(tmp_path: Path) -> None:
    """The one check that has another name: phantom (failed) of a run is G1a."""
    found = judged(planted_story("failed and yet there").write(tmp_path / "run"))
    assert found.verdict.checks["G1a"].count == 6


def test_differences_are_of_planted_runs() -> None:
    """Each difference has a reason and belongs to a planted run."""
    assert set(DIFFERENT) <= set(PLANTED)
    assert all(why for _, _, why in DIFFERENT.values())


@pytest.mark.parametrize("form", ["edn", "jsonl"])
def test_a_clean_run_is_valid_in_both_forms(form: str, tmp_path: Path) -> None:
    """Every value is there, acknowledged and read, sentinels included; and nothing is wrong."""
    found = judged(clean(partitions=2, streams=3, final_readers=2).write(tmp_path / "run"), form)
    assert (found.verdict.verdict, found.verdict.reasons) == ("valid", ())
    assert (found.verdict.stats["acked"], found.verdict.stats["read"], found.verdict.stats["keys"]) == (38, 38, 2)


def test_what_was_reserved_and_forgotten_is_info(tmp_path: Path) -> None:
    """A process that was killed: its reservations without outcome may have happened, one operation each."""
    story = clean(streams=1)
    story.rows["producer-1"] = [row for row in story.rows["producer-1"] if row.f == "reserve" or row.first_sequence < 9]
    story.torn = {"producer-1"}
    found = judged(story.write(tmp_path / "run"))
    assert found.verdict.reasons == ()
    assert found.verdict.stats["unknown"] == 3


def test_numbers_that_the_run_counts_otherwise_are_explained(tmp_path: Path) -> None:
    """Sentinels have their name, what was never sent failed, and both are told beside the numbers."""
    story = clean(partitions=2, streams=1)
    rows = story.rows["producer-1"]
    (reserved, *_rest) = [row for row in rows if row.f == "reserve"]
    more = {"first_sequence": reserved.last_sequence + 1, "last_sequence": reserved.last_sequence + 4}
    silent = reserved._replace(**more)
    unsent = silent._replace(f="unsent", type="fail", complete_ns=silent.invoke_ns + 9)
    story.rows["producer-1"] = [*rows, silent, unsent]
    directory = story.write(tmp_path / "run")
    found = judged(directory)
    stats = found.verdict.stats
    assert found.verdict.reasons == ()
    assert (stats["sentinels"], stats["unknown"], stats["failed"], stats["never_sent"]) == (2, 0, 4, 4)
    assert f"acked={stats['acked']}: 2 of them sentinels, which the run does not count (nor as read)" in found.notes
    text = summary_md(found)
    assert f"{stats['acked']} (2 of them sentinels" in text
    assert "4 (4 of them reserved and never sent, which the run counts apart)" in text
    lines = list(export_run(directory.history_dir).lines)
    sent = {mop[2] for line in lines if line["f"] == "send" and line["type"] == "invoke" for mop in line["value"]}
    assert {name for name in sent if name.startswith("sentinel")} == {"sentinel-0/0", "sentinel-0/1"}


def test_an_export_of_what_was_lost_legally_is_told_to_know_no_excuses(tmp_path: Path) -> None:
    """acks=1 and an election excuse nothing in the export; the verdict says so."""
    found = judged(planted_story("lost at the tail").write(tmp_path / "run"))
    assert any("cannot excuse anything: what acks=0, acks=1" in note for note in found.notes)


def test_processes_do_one_thing_at_a_time(tmp_path: Path) -> None:
    """However sends overlapped, the export is well formed, its time does not go back, and outcomes are not repeated."""
    story = clean(streams=2)
    rows = story.rows["producer-1"]
    story.rows["producer-1"] = [row._replace(invoke_ns=5, complete_ns=9) if row.f == "send" else row for row in rows]
    story.rows["producer-1"] += [
        row._replace(type="info", first_offset=-1, last_offset=-1) for row in rows if row.f == "send"
    ]
    directory = story.write(tmp_path / "run")
    lines = list(export_run(directory.history_dir).lines)
    assert [line["index"] for line in lines] == list(range(len(lines)))
    assert all(one["time"] <= other["time"] for one, other in pairwise(lines))
    assert judged(directory).verdict.reasons == ()


def test_rows_that_contradict_themselves_are_counted(tmp_path: Path) -> None:
    """What makes a run unknown is left out of its export, and said to be."""
    directory = planted_story("rows that make no sense").write(tmp_path / "run")
    assert export_run(directory.history_dir).left_out == 3
