"""A transaction for what a member was delivered: its steps, what helps against refusals, and what the history says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster.seams.clock import ManualClock
from loadgen.clients.base import ClientRefusal, Failure
from loadgen.clients.transactional import Remedy, TransactionRefusal
from loadgen.members.events import Assigned, Delivered, MemberEvent, Revoked, Transacted
from loadgen.members.output import CRASHED, Transformation, delivered, inputs_of
from loadgen.members.recording import MemberRecording
from loadgen.recorder import Recorder
from loadgen.spans import ReadRecord
from verifier.evidence.history import read_history

RECORDS = [ReadRecord(0, 5, b"a"), ReadRecord(1, 8, b"b"), ReadRecord(0, 7, b"c")]


class ScriptedOutput:
    """Refuses as it is told, by the name of the call; each call takes a second."""

    is_cooperative = True

    def __init__(self, clock: ManualClock, **refusals: list[Exception | None]) -> None:
        self._clock = clock
        self._refusals = refusals
        self.calls: list[Any] = []

    def _called(self, name: str, *what: Any) -> None:
        self.calls.append((name, *what) if what else name)
        self._clock.advance_ms(1000)
        refusals = self._refusals.get(name, [])
        refusal = (refusals.pop(0) if len(refusals) > 1 else refusals[0]) if refusals else None
        if refusal is not None:
            raise refusal

    def initialize(self) -> None:
        self._called("initialize")

    def begin(self) -> None:
        self._called("begin")

    def produce(self, topic: str, partition: int, key: bytes | None, value: bytes, sequence: int) -> None:
        self._called("produce", partition, value)

    def add_offsets(self, topic: str, offsets: Mapping[int, int], member: Any) -> None:
        self._called("add_offsets", dict(offsets))

    def occupy(self, topic: str) -> None:
        self._called("occupy", topic)

    def commit(self) -> None:
        self._called("commit")

    def abort(self) -> None:
        self._called("abort")

    def poll(self) -> None: ...
    def purge(self) -> None: ...
    def dispose(self, timeout_s: float) -> bool:
        return True


def refused(remedy: Remedy, *, is_certain: bool = False) -> TransactionRefusal:
    return TransactionRefusal("no", remedy, is_certain=is_certain)


def transacted(*, is_to_crash: bool = False, **refusals: list[Exception | None]) -> tuple[Transacted, list[Any]]:
    clock = ManualClock()
    output = ScriptedOutput(clock, **refusals)
    made = Transformation(output, "t", clock).transact(RECORDS, None, is_to_crash=is_to_crash)
    return made, output.calls


WRITTEN = ["begin", ("produce", 0, b"a"), ("produce", 1, b"b"), ("produce", 0, b"c"), ("add_offsets", {0: 8, 1: 9})]


def test_a_transaction_has_the_records_and_their_offsets() -> None:
    """In this order; the offsets are those of the next records."""
    made, calls = transacted()
    assert calls == [*WRITTEN, "commit"]
    assert (made.inputs, made.added, made.is_committed) == ({0: (5, 7), 1: (8, 8)}, "ok", True)
    assert [(end.f, end.outcome, end.error) for end in made.ends] == [("commit", "ok", None)]


def test_a_crash_is_before_the_commit() -> None:
    """Everything is sent, and no end is asked for: the history says that it is not committed."""
    made, calls = transacted(is_to_crash=True)
    assert calls == WRITTEN
    assert [(end.f, end.outcome, end.error) for end in made.ends] == [("abort", "info", CRASHED)]
    assert not made.is_committed


@pytest.mark.parametrize(
    ("refusals", "ends", "is_committed"),
    [
        # what may help is repeated
        ({"commit": [refused(Remedy.REPEAT), None]}, [("commit", "ok")], True),
        ({"commit": [refused(Remedy.ABORT, is_certain=True)]}, [("commit", "fail"), ("abort", "ok")], False),
        # an earlier attempt may have been carried out
        (
            {"commit": [refused(Remedy.REPEAT), refused(Remedy.ABORT, is_certain=True)]},
            [("commit", "info"), ("abort", "ok")],
            False,
        ),
        ({"commit": [refused(Remedy.REPLACE)]}, [("commit", "info")], False),
        ({"commit": [refused(Remedy.REPEAT)]}, [("commit", "info"), ("abort", "ok")], False),
        # it was never asked for
        ({"add_offsets": [refused(Remedy.ABORT)]}, [("abort", "ok")], False),
        ({"add_offsets": [refused(Remedy.REPLACE)]}, [("abort", "info")], False),
        ({"begin": [refused(Remedy.REPLACE)]}, [("abort", "info")], False),
        ({"produce": [ClientRefusal(Failure("no room"))]}, [("abort", "ok")], False),
        ({"produce": [BufferError("full"), None]}, [("commit", "ok")], True),
        ({"produce": [BufferError("full")]}, [("abort", "ok")], False),
    ],
)
def test_what_a_refusal_comes_to(
    refusals: dict[str, list[Exception | None]], ends: list[tuple[str, str]], is_committed: bool
) -> None:
    """Again while that may help, an abort where that is asked for, and no claim that is not certain."""
    made, _ = transacted(**refusals)
    assert [(end.f, end.outcome) for end in made.ends] == ends
    assert made.is_committed == is_committed
    assert made.added == ("ok" if made.ends[0].f == "commit" else "info")


def test_an_initialization_is_repeated() -> None:
    """Until it cannot help anymore; its refusal is told."""
    clock = ManualClock()
    output = ScriptedOutput(clock, initialize=[refused(Remedy.REPEAT), refused(Remedy.REPEAT), None])
    assert Transformation(output, "t", clock).initialize() is None
    assert len(output.calls) == 3
    assert Transformation(ScriptedOutput(clock, initialize=[refused(Remedy.REPLACE)]), "t", clock).initialize() == "no"


def test_a_transaction_is_recorded(tmp_path: Path) -> None:
    """Its number is that of no other call; the offsets are in the sessions of their partitions."""
    recorder = Recorder("members-x", tmp_path / "m.arrow", ManualClock())
    member = MemberRecording(recorder, "g", "t", 77)
    made, _ = transacted(commit=[refused(Remedy.ABORT, is_certain=True)])
    member.record([Assigned([0], "id", 1, 1), Assigned([1], "id", 2, 2), made])
    recorder.close()
    rows = read_history(tmp_path / "m.arrow").to_pylist()[2:]
    names = ("f", "type", "partition", "first_offset", "last_offset", "session", "error")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("begin", "ok", -1, -1, -1, -1, None),
        ("offsets", "ok", 0, 5, 7, 1, None),
        ("offsets", "ok", 1, 8, 8, 2, None),
        ("commit", "fail", -1, -1, -1, -1, "no"),
        ("abort", "ok", -1, -1, -1, -1, None),
    ]
    assert len({row["op"] for row in rows}) == 1 and rows[0]["op"] > 0


def test_only_what_the_member_still_has_is_transformed() -> None:
    """What was given away, or given back, is delivered again."""
    events: list[MemberEvent] = [
        Delivered(RECORDS, {}, 1, 2),
        Revoked({0: 8}, False, 3),
        Assigned([2], "id", 2, 4),
        Delivered([ReadRecord(2, 1, b"d")], {}, 5, 6),
    ]
    assert [(each.partition, each.offset) for each in delivered(events)] == [(1, 8), (2, 1)]
    assert delivered([Delivered(RECORDS, {}, 1, 2), Assigned([0, 1], "id", 2, 4)]) == []
    assert inputs_of(RECORDS) == {0: (5, 7), 1: (8, 8)}
