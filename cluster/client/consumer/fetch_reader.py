"""FetchReader: the I/O of a consumer: sends what is due, waits, and hands answers to those who asked.

Owns the order of one turn, which request an answer belongs to, and continuing after a turn that an exception has cut
short, wherever it came (Ctrl-C comes in the program's thread, which is this one). A thin shell: what is due and what
answers mean is ``fetching``'s and ``lookup``'s. One thread at a time; it does not sleep but in ``turn``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from cluster.client.consumer.fetch_plans import Fetch
from cluster.client.consumer.fetching import FetchCore
from cluster.client.consumer.lookup import OffsetLookup, OffsetQuery, Sought
from cluster.client.errors import UnsupportedVersion
from cluster.client.exchange import ClientResponse
from cluster.client.missing_topics import MissingTopics
from cluster.client.offset_listing import ListedOffset, list_offsets_request, listed_offsets
from cluster.client.wiring import ClientIo
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchResponse, build_request_body, parse_response
from cluster.seams.clock import Clock
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: What takes an answer of ListOffsets: what was asked, what came, now. Returns the topics whose metadata is old.
TakeListed = Callable[
    [Mapping[TopicPartition, Sought], Mapping[TopicPartition, ListedOffset | ErrorCode], int], set[str]
]


class _Listing(NamedTuple):
    """A ListOffsets request in flight."""

    lookup: OffsetLookup
    take: TakeListed
    asked: dict[TopicPartition, Sought]


class FetchReader:
    """NOT thread-safe. ``queries`` are asked as long as they are in it."""

    def __init__(self, core: FetchCore, io: ClientIo, clock: Clock, isolation_level: int) -> None:
        self.metadata = io.metadata
        self.fetch_count = self.fetched_bytes = 0
        self._core = core
        self._network = io.network
        self._updater = io.updater
        self._clock = clock
        self._isolation_level = isolation_level
        self._missing = MissingTopics()
        # What programs look for, besides the positions that the core looks for.
        self.queries: list[OffsetQuery] = []
        # Set while there is I/O, and left so by an exception.
        self._is_cut = False

    def __repr__(self) -> str:
        return f"FetchReader({self._core!r}, {self._network!r})"

    def close(self) -> None:
        """Close all connections."""
        self._network.close()

    def wakeup(self) -> None:
        """Let the turn that waits, or else the next, end. From any thread."""
        self._network.wakeup()

    def turn(self, timeout_ms: float) -> None:
        """Send what is due, wait until something happens (or for ``timeout_ms``), and take it in."""
        self._begin()
        waits = [timeout_ms, *self._send()]
        delay_ms = self._updater.maybe_update()
        if delay_ms is not None:
            waits.append(delay_ms)
        for response in self._updater.absorb(self._network.poll(max(0, min(waits)))):
            self._take(response)
        self._is_cut = False

    def send(self) -> None:
        """Send what nodes take now."""
        self._begin()
        self._send()
        self._is_cut = False

    def _begin(self) -> None:
        """After a turn that was cut short no one knows what was sent, nor how much of what came was taken in: all
        connections are abandoned, and everything is asked again.
        """
        if self._is_cut:
            logger.info("an exception has cut I/O short: reconnecting")
            self._network.abandon()
            self._updater.abandon()
            self._core.abandoned()
            for query in self.queries:
                query.lookup.abandoned()
        self._is_cut = True

    def _send(self) -> list[float]:
        """Returns after how many milliseconds, at most, there may be more to send."""
        now_ms = self._clock.monotonic_ms()
        view = self.metadata.view
        waits: list[float] = []
        plan = self._core.plan(view, now_ms)
        stale = plan.stale_topics
        retries = [self._core.retry_ms(now_ms)]
        # Offsets first: the answer to a fetch may be long in coming, and answers come in order.
        lookups = [(self._core.resets, self._core.listed, plan.lookups)]
        for query in self.queries:
            due = query.lookup.due(view, now_ms)
            for node_id in [node_id for node_id in due if not view.has_broker(node_id)]:
                stale.update(topic for topic, _ in due.pop(node_id))
            lookups.append((query.lookup, query.take, due))
            retries.append(query.lookup.retry_ms(now_ms))
        for lookup, take, due in lookups:
            for node_id, asked in due.items():
                if self._is_ready(node_id, waits):
                    self._send_listing(node_id, _Listing(lookup, take, asked))
        for node_id, partitions in plan.fetches.items():
            if self._is_ready(node_id, waits):
                try:
                    version = self._network.nodes.version(node_id, ApiKey.FETCH)
                except UnsupportedVersion as error:
                    self._core.unsupported(partitions, str(error))
                else:
                    self._send_fetch(self._core.fetch(node_id, partitions, view), version)
        for topic in stale:
            self.metadata.request_update_for(topic)
        if stale or self._missing:
            outstanding = [key for query in self.queries for key in query.lookup.outstanding]
            self._missing.look(view, [*self._core.assignment.assigned, *outstanding])
        waits += [retry_ms - now_ms for retry_ms in retries if retry_ms is not None and retry_ms > now_ms]
        return waits

    def _is_ready(self, node_id: int, waits: list[float]) -> bool:
        if self._network.ready(self.metadata.view.brokers[node_id]):
            return True
        delay_ms = self._network.delay_ms(node_id)
        if delay_ms is not None:
            waits.append(delay_ms)
        return False

    def _send_fetch(self, fetch: Fetch, version: int) -> None:
        body = build_request_body(version, fetch.request)
        self._network.send(fetch.node_id, ApiKey.FETCH, version, [body], partial(_decode, version), fetch)

    def _send_listing(self, node_id: int, listing: _Listing) -> None:
        view = self.metadata.view
        described = {key: view.partition(*key) for key in listing.asked}
        request = list_offsets_request(
            {key: sought.timestamp for key, sought in listing.asked.items()},
            isolation_level=self._isolation_level,
            leader_epochs={key: seen.leader_epoch for key, seen in described.items() if seen is not None},
        )
        listing.lookup.asked(listing.asked)
        try:
            self._network.send_message(node_id, request, listing)
        except UnsupportedVersion as error:
            logger.warning("node %d cannot be asked for offsets: %s", node_id, error)
            refused = dict.fromkeys(listing.asked, ErrorCode.UNSUPPORTED_VERSION)
            listing.take(listing.asked, refused, self._clock.monotonic_ms())

    def _take(self, response: ClientResponse) -> None:
        now_ms = self._clock.monotonic_ms()
        context = response.context
        stale: set[str] = set()
        if isinstance(context, Fetch):
            if response.failure is not None:
                self._core.fetch_failed(context)
                return
            self.fetch_count += 1
            self.fetched_bytes += sum(len(result.records) for result in response.answer.partitions)
            stale = self._core.fetched(context, response.answer, now_ms)
        elif isinstance(context, _Listing):
            if response.failure is not None:
                context.lookup.failed(context.asked, now_ms)
                return
            stale = context.take(context.asked, listed_offsets(response.answer), now_ms)
        for topic in stale:
            self.metadata.request_update_for(topic)


def _decode(version: int, frame: memoryview) -> FetchResponse:
    """The answer to a fetch. Its records are copied: they outlive the frame."""
    response = parse_response(frame, version)
    return response._replace(
        partitions=[
            result._replace(records=bytes(result.records) if isinstance(result.records, memoryview) else b"")
            for result in response.partitions
        ]
    )
