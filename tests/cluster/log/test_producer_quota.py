"""The producers that all logs of a broker remember together: who is admitted, and who makes room."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from cluster.log.log_ends import MOMENT_MS, ROOM_MS
from cluster.log.producer_quota import COUNT_MS, ProducerQuota
from cluster.log.producers import ProducerStates
from tests.cluster.log.builders import make_header
from tests.support.examples import examples

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


def comes(
    room: ProducerQuota, log: FakeLog, producer_id: int, now_ms: int, most_of_log: int = NO_BOUND, host: str = ""
) -> bool:
    """A batch of a producer, as a leader takes it."""
    is_known = log.producers.get(producer_id) is not None
    if not is_known and room.refusal(log, most_of_log, now_ms, host) is not None:
        return False
    log.append(producer_id)
    if not is_known:
        log.producers.hosts.admit(producer_id, host)
    return True


def test_all_logs_share_one_bound():
    """A producer of two logs is two; who is known continues to write; each log has its own bound besides."""
    logs = [FakeLog() for _ in range(5)]
    room = ProducerQuota(10, lambda: logs)
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
    room = ProducerQuota(4, lambda: logs)
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

    room = ProducerQuota(3, look)
    for now_ms in range(3 * COUNT_MS):
        comes(room, logs[0], now_ms, now_ms)
    assert len(counted) == 3


def test_who_writes_nothing_makes_room_wherever_it_is():
    """After five minutes, by the broker's clock, for a producer of any log: also of one that knows nobody."""
    logs = [FakeLog() for _ in range(4)]
    room = ProducerQuota(12, lambda: logs)
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
    room = ProducerQuota(20, lambda: logs)
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
    room = ProducerQuota(20, lambda: [small, large])
    assert all(comes(room, small, producer_id, 0) for producer_id in range(3))
    assert all(comes(room, large, producer_id, 0) for producer_id in range(17))
    assert not comes(room, large, 100, MOMENT_MS)
    assert comes(room, large, 100, ROOM_MS + MOMENT_MS)
    assert small.ids == {0, 1, 2} and large.ids == {100}


def test_one_host_cannot_take_the_last_eighth():
    """Of a log and of all logs: others still find room there, each a little."""
    logs = [FakeLog() for _ in range(4)]
    room = ProducerQuota(160, lambda: logs)
    for log in logs:
        for producer_id in range(100):
            comes(room, log, producer_id, 0, host="crowd")
    assert sum(len(log.producers) for log in logs) == 140
    assert all(comes(room, logs[0], producer_id, COUNT_MS, host="other") for producer_id in range(1000, 1010))
    assert not comes(room, logs[0], 1010, COUNT_MS, host="other"), "it has no little any more"
    assert comes(room, logs[0], 1011, COUNT_MS, host="third")
    refusal = room.refusal(logs[0], NO_BOUND, COUNT_MS, "crowd")
    assert refusal is not None and refusal.endswith("of crowd")
    log = FakeLog()
    room = ProducerQuota(10_000, lambda: [log])
    assert [comes(room, log, number, 0, 80, host="crowd") for number in range(80)] == [True] * 70 + [False] * 10
    assert comes(room, log, 1000, 0, 80, host="other")


@examples(15)
@given(
    st.lists(
        st.tuples(st.sampled_from(["crowd", "crowd", "crowd", "many"]), st.integers(0, 2), st.integers(1, 2)),
        min_size=200,
        max_size=600,
    )
)
def test_a_crowd_evicts_none_but_its_own(events: list[tuple[str, int, int]]) -> None:
    """For hours, however idle the others are, whether its producers write once or twice; and a newcomer of another
    host always finds room."""
    logs = [FakeLog() for _ in range(3)]
    room = ProducerQuota(80, lambda: logs)
    now_ms = 0
    for log in logs:
        assert comes(room, log, 7, now_ms, 32, host="victim")
    for number, (host, which, batches) in enumerate(events):
        now_ms += MOMENT_MS
        producer_id = 1000 + number
        if comes(room, logs[which], producer_id, now_ms, 32, host=host) and batches == 2:
            logs[which].append(producer_id, 1)
    assert all(7 in log.ids for log in logs)
    assert comes(room, logs[0], 8, now_ms + COUNT_MS, 32, host="newcomer")


def test_who_wrote_more_than_once_is_forgotten_last():
    """Of producers of one host: made-up ones write one batch each."""
    log = FakeLog()
    room = ProducerQuota(1000, lambda: [log])
    for producer_id in range(8):
        assert comes(room, log, producer_id, 0, 8)
    log.append(0, 1)
    assert not comes(room, log, 100, MOMENT_MS, 8)
    assert comes(room, log, 100, ROOM_MS + MOMENT_MS, 8)
    assert log.ids == {0, 100}


def test_markers_leave_nothing_beyond_half_of_the_room():
    """They are written without a producer of theirs, for as many partitions as a client likes."""
    logs = [FakeLog() for _ in range(10)]
    room = ProducerQuota(20, lambda: logs)
    for log in logs:
        for producer_id in range(3):
            log.append(producer_id)
            room.marker_came(log, producer_id, NO_BOUND, 0)
    assert sum(len(log.producers) for log in logs) == 9, "the first counts twice until all are counted again"
