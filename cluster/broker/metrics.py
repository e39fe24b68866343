"""Metrics: plain integers counted on the hot path.

Owns the counters of a broker and the detection of retried batches. Does not own what is counted when, the times of
requests (``request_metrics``), nor how all of it is shown (``exposition``).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from zlib import crc32

from cluster.broker.coordinator_counters import CoordinatorCounters
from cluster.broker.recent_batches import RecentBatches
from cluster.broker.request_metrics import RequestMetrics, Times
from cluster.metadata.store import SessionState
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import HEADER_BYTES, BatchHeader
from cluster.protocol.fetch import FetchResult
from cluster.seams.storage import payload_size

#: How many appended batches at least are remembered to know a retry by, and how many bytes of their records.
_RECENT_BATCHES = 16_384
_FINGERPRINT_BYTES = 64


COUNTERS = {
    "produce_batches": "Batches appended for clients",
    "produce_duplicates": "Batches answered as duplicates and not appended",
    "produce_retries": "Batches that arrived again, whatever became of them",
    "isr_shrinks": "Replicas' leaving the in-sync set, asked for by this leader",
    "isr_expands": "Replicas' joining the in-sync set, asked for by this leader",
    "leader_elections": "Times this broker became leader of a partition",
    "unclean_leader_elections": "Times this broker became leader from outside the in-sync set",
    "truncated_records": "Offsets cut from logs of this follower",
    "requests": "Requests received",
    "refused_frames": "Frames that were no request we serve: the connection was closed",
    "refused_connections": "Connections refused or closed for others: max.connections, max.connections.per.ip",
    "idle_connections": "Connections closed after connections.max.idle.ms of silence",
    "zookeeper_session_expirations": "Sessions with ZooKeeper that ended",
    "unreadable_records": "Records of internal topics that could not be read when their coordinator moved here",
    "event_loop_long_turns": "Turns of the event loop of 100 ms or longer, in which no one was served",
}


class TopicTraffic:
    """What went in and out of one topic on this broker: bytes of record batches, as they are on the wire."""

    __slots__ = ("bytes_in", "bytes_out", "messages_in", "replication_bytes_in", "replication_bytes_out")

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0

    def __repr__(self) -> str:
        return f"<TopicTraffic {self.messages_in} messages in>"


class Counters:
    """What has happened in this process. Each attribute of ``COUNTERS`` is one counter."""

    __slots__ = (
        *COUNTERS,
        "_recent_batches",
        "api",
        "background_disk",
        "connections",
        "coordinators",
        "log_load_ns",
        "now_ns",
        "session_state",
        "topics",
        "truncations",
    )

    def __init__(self, now_ns: Callable[[], int] = lambda: 0) -> None:
        """``now_ns`` is a monotonic clock; without one all times are zero."""
        self.now_ns = now_ns
        self.api = RequestMetrics()
        self.topics: dict[str, TopicTraffic] = {}
        self.connections: dict[str, int] = {}
        self.background_disk = Times()
        self.coordinators = CoordinatorCounters()
        self.log_load_ns = 0
        self.session_state = SessionState.SUSPENDED
        self.produce_batches = 0
        self.produce_duplicates = 0
        self.produce_retries = 0
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.leader_elections = 0
        self.unclean_leader_elections = 0
        self.zookeeper_session_expirations = 0
        self.truncated_records = 0
        #: Why logs of this follower were cut or begun again -> how often.
        self.truncations: Counter[str] = Counter()
        self.requests = 0
        self.refused_frames = 0
        self.refused_connections = 0
        self.idle_connections = 0
        self.unreadable_records = 0
        self.event_loop_long_turns = 0
        self._recent_batches = RecentBatches(_RECENT_BATCHES)

    def __repr__(self) -> str:
        return f"<Counters {', '.join(f'{name}={getattr(self, name)}' for name in COUNTERS)}>"

    def topic(self, name: str) -> TopicTraffic:
        """Of a topic that has a replica here: never of any name that a client makes up."""
        traffic = self.topics.get(name)
        if traffic is None:
            traffic = self.topics[name] = TopicTraffic()
        return traffic

    def fetch_answered(self, error_code: int, results: Sequence[FetchResult], *, to_broker: bool) -> None:
        """The answer to a fetch: its errors, and the bytes that leave."""
        self.api.failed(ApiKey.FETCH, error_code)
        for result in results:
            if result.error_code:
                self.api.failed(ApiKey.FETCH, result.error_code)
            elif result.records:
                traffic, size_bytes = self.topic(result.topic), payload_size((result.records,))
                if to_broker:
                    traffic.replication_bytes_out += size_bytes
                else:
                    traffic.bytes_out += size_bytes

    def session_changed(self, state: SessionState) -> None:
        self.session_state = state
        self.zookeeper_session_expirations += state is SessionState.EXPIRED

    def batch_arrived(self, header: BatchHeader, batch: memoryview, *, is_appended: bool) -> None:
        """Count a batch that was appended, and one that came again, whatever the sequence check made of it.

        It is known by its base timestamp and the head of its records, not by producer id and sequence: so a retry
        is seen without idempotence too.
        """
        checksum = crc32(batch[HEADER_BYTES : HEADER_BYTES + _FINGERPRINT_BYTES])
        fingerprint = header.base_timestamp << 32 | checksum
        self.produce_retries += self._recent_batches.has(fingerprint, add=is_appended)
        self.produce_batches += is_appended

    def isr_changed(self, before: frozenset[int], after: frozenset[int]) -> None:
        self.isr_shrinks += bool(before - after)
        self.isr_expands += bool(after - before)


class LoopLag:
    """How late the event loop runs a timer: the worst of the last 30 to 60 seconds, however often it is read."""

    INTERVAL_S = 0.1
    WINDOW_S = 30.0

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._worst_s, self._before_s = 0.0, 0.0
        self._turn = loop.time() + self.WINDOW_S
        self._due = loop.time() + self.INTERVAL_S
        self._timer = loop.call_at(self._due, self._measure)

    def _measure(self) -> None:
        now = self._loop.time()
        if now >= self._turn:
            self._before_s, self._worst_s, self._turn = self._worst_s, 0.0, now + self.WINDOW_S
        self._worst_s = max(self._worst_s, now - self._due)
        self._due = now + self.INTERVAL_S
        self._timer = self._loop.call_at(self._due, self._measure)

    def worst_s(self) -> float:
        """The worst lag of this window and the one before, in seconds (what is lagging right now is not in it yet)."""
        return max(self._worst_s, self._before_s)

    def close(self) -> None:
        self._timer.cancel()
