"""The producers that all logs of a broker remember together: who is admitted, and who makes room."""

from __future__ import annotations

from dataclasses import dataclass, field

from cluster.log.producer_room import COUNT_MS, ProducerRoom
from cluster.log.producers import MOMENT_MS, ROOM_MS, ProducerStates
from tests.cluster.log.builders import make_header

NO_BOUND = 1000


@dataclass
class FakeLog:
    """A log without files: its producers, and where it ends."""

    producers: ProducerStates = field(default_factory=ProducerStates)
    log_end_offset: int = 0

    def append(self, producer_id: int, sequence: int = 0) -> None:
        self.producers.update(make_header(producer_id=producer_id, base_sequence=sequence), self.log_end_offset)
        self.log_end_offset += 1

    @property
    def ids(self) -> set[int]:
        return set(self.producers.entries)


def comes(room: ProducerRoom, log: FakeLog, producer_id: int, now_ms: int, most_of_log: int = NO_BOUND) -> bool:
    """A batch of a producer, as a leader takes it."""
    if log.producers.get(producer_id) is None and room.refusal(log, most_of_log, now_ms) is not None:
        return False
    log.append(producer_id)
    return True


def test_all_logs_share_one_bound():
    """A producer of two logs is two; who is known continues to write; each log has its own bound besides."""
    logs = [FakeLog() for _ in range(5)]
    room = ProducerRoom(10, lambda: logs)
    assert [comes(room, log, 7, 0) for log in logs for _ in range(2)] == [True] * 10
    assert [comes(room, log, producer_id, 0) for log in logs for producer_id in (8, 9)] == [True] * 5 + [False] * 5
    assert sum(len(log.producers) for log in logs) == 10
    assert all(comes(room, log, 7, 0) for log in logs)
    refusal = room.refusal(logs[0], NO_BOUND, 0)
    assert refusal is not None and "10 producers wrote to the partitions of this broker" in refusal
    refusal = room.refusal(logs[0], 2, 0)
    assert refusal is not None and refusal.startswith("2 producers wrote here")


def test_the_total_cannot_drift():
    """It is counted again after a second at most: what was admitted and not written, what was copied, what expired."""
    logs = [FakeLog(), FakeLog()]
    room = ProducerRoom(4, lambda: logs)
    for _ in range(4):
        assert room.refusal(logs[0], NO_BOUND, 0) is None  # nothing comes of it
    assert room.refusal(logs[0], NO_BOUND, COUNT_MS - 1) is not None
    assert comes(room, logs[0], 1, COUNT_MS)
    for producer_id in range(3):
        logs[1].append(producer_id)
    assert comes(room, logs[0], 2, 2 * COUNT_MS - 1), "not counted yet"
    assert not comes(room, logs[0], 3, 2 * COUNT_MS)
    del logs[1]
    assert comes(room, logs[0], 3, 3 * COUNT_MS)


def test_the_logs_are_counted_once_a_second_at_most():
    """However many producers come: it costs a look at each log."""
    logs, counted = [FakeLog()], []

    def look() -> list[FakeLog]:
        counted.append(0)
        return logs

    room = ProducerRoom(3, look)
    for now_ms in range(3 * COUNT_MS):
        comes(room, logs[0], now_ms, now_ms)
    assert len(counted) == 3


def test_who_writes_nothing_makes_room_wherever_it_is():
    """After five minutes, by the broker's clock, for a producer of any log: also of one that knows nobody."""
    logs = [FakeLog() for _ in range(4)]
    room = ProducerRoom(12, lambda: logs)
    assert all(comes(room, log, producer_id, 0) for log in logs[:3] for producer_id in range(4))
    seen = []
    for now_ms in range(0, 2 * ROOM_MS, MOMENT_MS):
        seen.append(comes(room, logs[3], 99, now_ms))
        if seen[-1]:
            break
    # The first refusal after the logs were written to has noted where they ended.
    assert (now_ms, seen[:-1]) == (ROOM_MS + MOMENT_MS, [False] * (ROOM_MS // MOMENT_MS + 1))


def test_who_writes_is_never_forgotten():
    """However many others come to all logs, for hours."""
    logs = [FakeLog() for _ in range(4)]
    room = ProducerRoom(20, lambda: logs)
    for log in logs:
        assert comes(room, log, 7, 0)
    admitted, stranger = 0, 1000
    for now_ms in range(0, 20 * ROOM_MS, MOMENT_MS):
        for log in logs:
            stranger += 1
            admitted += comes(room, log, stranger, now_ms)
            if now_ms % (ROOM_MS - MOMENT_MS) == 0:
                assert 7 in log.ids
                log.append(7, now_ms)
        assert sum(len(log.producers) for log in logs) <= 20
    assert all(7 in log.ids for log in logs)
    assert admitted > 60, "the others make room for each other"


def test_logs_with_the_most_producers_make_room_first():
    """A producer that is quiet in a log of few keeps its place while a log of many has enough that are idle."""
    small, large = FakeLog(), FakeLog()
    room = ProducerRoom(20, lambda: [small, large])
    assert all(comes(room, small, producer_id, 0) for producer_id in range(3))
    assert all(comes(room, large, producer_id, 0) for producer_id in range(17))
    assert not comes(room, large, 100, MOMENT_MS)
    assert comes(room, large, 100, ROOM_MS + MOMENT_MS)
    assert small.ids == {0, 1, 2} and large.ids == {100}
