"""Loads by hand: what their verdict accuses of, what it acquits, and what it leaves open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.seams.clock import SystemClock
from verifier.evidence.history import HistoryRow, HistoryWriter
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.sequenced_value import SENTINEL_STREAM
from verifier.evidence.standalone import LoadStart, ReadBack
from verifier.operations.options import JudgeOptions
from verifier.operations.verify_history import ClientVerdict
from verifier.verify_standalone import judge_load

TOPIC, LAST = "t", 9
START = LoadStart(
    process="load", machine="here", workers=None, run_id=7, topic=TOPIC, client="native", acks="all", idempotence=True,
    ends={0: 0}, topic_config={"cleanup.policy": "delete"},
)  # fmt: skip
BACK = ReadBack(why="", after=("load",), begins={0: 0})


def row(f: str, kind: str, first: int, last: int, offset: int = -1, **more: Any) -> HistoryRow:
    """Of stream 0 in partition 0; ``at`` is when, in seconds."""
    at = int(more.pop("at", 1) * 1e9)
    end = -1 if offset < 0 else offset + last - first
    base = HistoryRow(f, kind, TOPIC, 0, 0, first, last, offset, end, at, at + 1000)  # type: ignore[arg-type]
    return base._replace(**more)


RESERVED = row("reserve", "invoke", 0, LAST, at=0)
SENT = [RESERVED, row("send", "ok", 0, LAST - 1, 0), row("unsent", "fail", LAST, LAST, at=2)]
READ = [
    row("poll", "ok", 0, LAST - 1, 0, at=4, session=1),
    row("poll", "ok", 0, 0, LAST, at=4, session=1, stream=SENTINEL_STREAM),
]
ENDED = [
    row("reserve", "invoke", 0, 0, at=3, stream=SENTINEL_STREAM),
    row("sentinel", "ok", 0, 0, LAST, at=3, stream=SENTINEL_STREAM),
]


def load(
    place: Path, sent: list[HistoryRow], read: list[HistoryRow], start: LoadStart = START, back: ReadBack | None = BACK
) -> RunDirectory:
    """A load's directory, all of whose histories have ended."""
    run = RunDirectory(place / "load").prepare()
    for name, rows in ((start.process, sent), ("sentinel", ENDED), ("final", read)):
        writer = HistoryWriter(run.history(name), name, SystemClock())
        for each in rows:
            writer.append(each)
        writer.close()
    start.write(run)
    if back is not None:
        back.write(run)
    return run


def judged(*given: Any, **more: Any) -> ClientVerdict:
    return judge_load(load(*given, **more), JudgeOptions())


def found(verdict: ClientVerdict) -> dict[str, int]:
    return {name: check.count for name, check in verdict.verdict.checks.items() if check.count}


def test_what_was_acknowledged_and_read_back_is_valid(tmp_path: Path) -> None:
    """Counted as the load was: without what found the end, and what was reserved and never sent did not fail."""
    verdict = judged(tmp_path, SENT, READ)
    assert (verdict.verdict.verdict, verdict.verdict.reasons) == ("valid", ())
    stats = verdict.verdict.stats
    assert [stats[name] for name in ("acked", "read", "failed", "unsent")] == [LAST, LAST, 0, 1]
    assert any("see what the brokers stored" in note for note in verdict.notes)
    assert not any("unseen" in note or "which the run counts" in note for note in verdict.notes)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ([row("poll", "ok", 0, 3, 0, session=1), row("poll", "ok", 5, LAST - 1, 5, session=1)],
         {"lost-write", "unseen"}),
        ([row("poll", "ok", 0, 5, 0, session=1)], {"unseen"}),
        ([*READ, row("poll", "ok", 3, 3, LAST + 1, at=5, session=1)], {"duplicate"}),
        ([*READ, row("poll", "ok", LAST, LAST, LAST + 1, at=5, session=1)], {"G1a"}),
        ([*READ, row("poll", "ok", -1, -1, LAST + 1, at=5, session=1, stream=-1, error="undecodable: damaged")],
         {"phantom"}),
    ],
    ids=["lost", "lost at the end", "twice", "refused and there", "damaged"],
)  # fmt: skip
def test_what_its_own_values_show_is_invalid(tmp_path: Path, read: list[HistoryRow], expected: set[str]) -> None:
    """A load that was read back whole is accused, also of what is missing at the end of the log."""
    read = [each._replace(last_offset=each.first_offset) if each.stream < 0 else each for each in read]
    verdict = judged(tmp_path, SENT, read)
    assert (verdict.verdict.verdict, expected <= found(verdict).keys()) == ("invalid", True)


def others(error: str) -> HistoryRow:
    one = row("poll", "ok", -1, -1, 20, at=5, session=1, stream=-1, error=error)
    return one._replace(last_offset=22)


@pytest.mark.parametrize("error", ["foreign: run 8", "undecodable: not a sequenced value", "undecodable: null value"])
def test_a_topic_may_be_shared(tmp_path: Path, error: str) -> None:
    """Records of others are left out, and that is said."""
    verdict = judged(tmp_path, SENT, [*READ, others(error)])
    assert verdict.verdict.verdict == "valid"
    assert any(note.startswith("3 records that were read are of others") for note in verdict.notes)


def shifted(rows: list[HistoryRow], by: int) -> list[HistoryRow]:
    return [each._replace(first_offset=each.first_offset + by, last_offset=each.last_offset + by)
            if each.first_offset >= 0 else each for each in rows]  # fmt: skip


def test_an_earlier_load_of_the_same_run_id_is_another(tmp_path: Path) -> None:
    """``--kafka-run-id`` or a settings file again, in the same topic: the same values stand before this load's."""
    start, sent, read = replace(START, ends={0: 10}), shifted(SENT, 10), shifted(READ, 10)
    former = READ[0]._replace(session=2)
    verdict = judged(tmp_path, sent, [*read, former], start)
    assert (verdict.verdict.verdict, verdict.verdict.stats["read"]) == ("valid", LAST)
    assert any(note.startswith(f"{LAST} records that were read are of others") for note in verdict.notes)
    # where the log was cut below that end, and this load wrote there, nothing is left out
    assert found(judged(tmp_path, SENT, [*READ, *read], start))["duplicate"] == LAST


SHORT = [row("poll", "ok", 0, 5, 0, session=1)]


@pytest.mark.parametrize(
    ("start", "back", "why"),
    [
        (START, None, "was not read back at the end; do it with 'gapless load --read-back"),
        (START, replace(BACK, why="partition 0 took no record"), "at the end: partition 0 took no record; do it"),
        (START, replace(BACK, after=()), "was read back before load had ended"),
        (START, replace(BACK, begins={0: 4}), "deleted records of partition 0 before"),
        (replace(START, topic_config={"cleanup.policy": "compact"}), BACK, "is compacted"),
        (replace(START, acks="1", idempotence=False), BACK, "unseen: an acknowledged value was never read (3), which "
         "may be legal: acks=1"),
        (replace(START, topic_config={"unclean.leader.election.enable": "true"}), BACK, "may be legal: unclean leader"),
    ],
    ids=["not read", "not all read", "read too early", "deleted", "compacted", "acks=1", "unclean"],
)  # fmt: skip
def test_what_nobody_can_tell_is_unknown(tmp_path: Path, start: LoadStart, back: ReadBack | None, why: str) -> None:
    """Neither an accusation nor an acquittal, for a reason that says what to do or what is not known."""
    verdict = judged(tmp_path, SENT, SHORT, start, back)
    assert verdict.verdict.verdict == "unknown" and not found(verdict)
    (reason,) = verdict.verdict.reasons
    assert why in reason
    assert verdict.verdict.checks["unseen"].withheld and verdict.findings.keys() & {"unseen"} == set()


def test_copies_of_a_producer_without_idempotence(tmp_path: Path) -> None:
    """They may be its own retries, but only if it had any."""
    start, twice = replace(START, idempotence=False), [*READ, row("poll", "ok", 3, 3, LAST + 1, at=5, session=1)]
    assert judged(tmp_path, SENT, twice, start).verdict.verdict == "invalid"
    again = [*SENT, row("retry", "info", 3, 3, count=1, error="timed out")]
    verdict = judged(tmp_path, again, twice, start)
    assert verdict.verdict.checks["duplicate"].withheld
    assert any("duplicate" in reason and "idempotence is off" in reason for reason in verdict.verdict.reasons)


def test_workers_whose_histories_are_elsewhere(tmp_path: Path) -> None:
    """Their values accuse nobody, and the load is not valid before they are here."""
    start = replace(START, process="load-w0", workers=2)
    stranger = row("poll", "ok", 0, 3, 20, at=5, session=1, stream=1 << 16)
    verdict = judged(tmp_path, SENT, [*READ, stranger], start, replace(BACK, after=("load-w0",)))
    assert verdict.verdict.verdict == "unknown" and not found(verdict)
    assert [reason.split(":")[0] for reason in verdict.verdict.reasons] == [
        "2 workers began, and 1 left something here",
        "values of streams that no history here reserved were read (65536)",
    ]


def test_clocks_of_several_machines_are_not_compared(tmp_path: Path) -> None:
    """What needs one clock is withheld."""
    run = load(tmp_path, SENT, READ)
    replace(START, process="load-2", machine="there").write(run)
    (run.history("load-2")).write_bytes(run.history("load").read_bytes())
    verdict = judge_load(run, JudgeOptions()).verdict
    assert verdict.checks["G1c-realtime"].withheld and "several machines" in " ".join(verdict.reasons)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("loadgen/load.load.json", "{}", "loadgen/load.load.json is not as the load left it: process is absent"),
        ("loadgen/read-back.json", "[]", "loadgen/read-back.json is not as the load left it"),
        ("history/load.arrow", "no history", "load.arrow"),
        ("history/load.arrow", None, "history/load.arrow is missing"),
    ],
)
def test_what_is_damaged_is_unknown(tmp_path: Path, name: str, content: str | None, why: str) -> None:
    """A standalone load with a damaged file is unknown, and the reason names the file."""
    run = load(tmp_path, SENT, READ)
    (run.path / name).unlink() if content is None else (run.path / name).write_text(content)
    verdict = judge_load(run, JudgeOptions()).verdict
    assert verdict.verdict == "unknown" and why in " ".join(verdict.reasons)


def test_a_history_without_an_end(tmp_path: Path) -> None:
    """Its process was killed: what its last half second acknowledged is not there."""
    run = load(tmp_path, SENT, READ)
    writer = HistoryWriter(run.history("load"), "load", SystemClock())
    for each in SENT:
        writer.append(each)
    writer.flush()
    verdict = judge_load(run, JudgeOptions()).verdict
    assert (verdict.verdict, "has no end" in verdict.reasons[0]) == ("unknown", True)
