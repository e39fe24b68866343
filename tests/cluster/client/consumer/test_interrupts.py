"""A consumer that an exception interrupts anywhere, as Ctrl-C may: the next call goes on, and nothing is lost by it."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from cluster.client import Consumer
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class
from cluster.protocol.records import NewRecord, build_batch
from cluster.seams.clock import ManualClock
from cluster.seams.randomness import Random
from tests.architecture.sources import ROOT
from tests.cluster.client.consumer.test_consumer import describe
from tests.cluster.client.scripted_selector import ScriptedSelector

RECORDS = 10
#: Of one batch.
SIZE = 3
KEY = ("t", 0)
#: Where an interrupt may come: everything that keeps state over a call.
ROOMS = (str(ROOT / "cluster/client"), str(ROOT / "cluster/protocol/connection.py"))
#: CPython looks for signals at calls and loops: this is neither, and there the program has its records.
SAFE = "return records"
Fetched = response_class(ApiKey.FETCH)
Listed = response_class(ApiKey.LIST_OFFSETS)


def fetched(request: Any, _header: Any) -> Any:
    """At most one batch, of a log that has ``RECORDS``."""
    of_topic = Fetched.FetchableTopicResponse
    (asked,) = request.topics[0].partitions
    begin = asked.fetch_offset // SIZE * SIZE
    values = [NewRecord(0, None, b"%d" % offset) for offset in range(begin, min(begin + SIZE, RECORDS))]
    partition = of_topic.PartitionData(
        partition_index=0,
        high_watermark=RECORDS,
        last_stable_offset=RECORDS,
        log_start_offset=0,
        aborted_transactions=None,
        records=build_batch(values, base_offset=begin) if asked.fetch_offset < RECORDS else b"",
    )
    return Fetched(responses=[of_topic(topic="t", partitions=[partition])])


def listed(request: Any, _header: Any) -> Any:
    of_topic = Listed.ListOffsetsTopicResponse
    (asked,) = request.topics[0].partitions
    offset = 0 if asked.timestamp == -2 else RECORDS
    partition = of_topic.ListOffsetsPartitionResponse(partition_index=0, offset=offset, leader_epoch=0)
    return Listed(topics=[of_topic(name="t", partitions=[partition])])


class Selector(ScriptedSelector):
    """Tells nothing of connections that were closed."""

    def close(self, node_id: int) -> None:
        super().close(node_id)
        if not self.open:
            self.events.clear()


class Interrupter:
    """Raises before the line of that number that is run; None raises never, and counts."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.count = 0
        self.where = ""

    def __call__(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        path = frame.f_code.co_filename
        return self.line if path.startswith(ROOMS) and frame.f_code.co_name != "_used" else None

    def line(self, frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        if event == "line" and self.at != self.count - 1:
            text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            if text != SAFE:
                self.count += 1
                if self.at == self.count - 1:
                    self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}: {text}"
                    # Nothing is counted after it, so that tracing would only take time.
                    sys.settrace(None)
                    raise KeyboardInterrupt
        return self.line


def offsets_read(interrupter: Interrupter) -> list[int]:
    """What a program reads that goes on after it was interrupted."""
    clock = ManualClock()
    selector = Selector(clock)

    def waited(request: Any, header: Any) -> Any:
        if request.topics[0].partitions[0].fetch_offset >= RECORDS:
            clock.advance_ms(request.max_wait_ms)
        return fetched(request, header)

    selector.answers |= {ApiKey.METADATA: describe, ApiKey.FETCH: waited, ApiKey.LIST_OFFSETS: listed}
    config = {"bootstrap.servers": "b1:9092", "auto.offset.reset": "earliest", "max.poll.records": 2}
    consumer = Consumer(config, selector=selector, clock=clock, random=Random(1))
    calls: list[Callable[[], object]] = [lambda: consumer.assign([KEY]), lambda: consumer.end_offsets([KEY])]
    read: list[int] = []
    before = sys.gettrace()
    sys.settrace(interrupter)
    try:
        for _ in range(60):
            try:
                while calls:
                    calls[0]()
                    del calls[0]
                read += [record.offset for record in consumer.poll(0.5)]
            except KeyboardInterrupt:
                continue
            if len(read) >= RECORDS:
                break
    finally:
        sys.settrace(before)
    assert consumer.position(KEY) == RECORDS
    consumer.close()
    return read


def play(step: int) -> None:
    counting = Interrupter(None)
    assert offsets_read(counting) == list(range(RECORDS))
    assert counting.count > 1_000
    for at in range(0, counting.count, step):
        interrupter = Interrupter(at)
        try:
            read = offsets_read(interrupter)
        except AssertionError as error:
            raise AssertionError(f"line {at}: {interrupter.where}: {error}") from error
        assert read == list(range(RECORDS)), f"line {at}: {interrupter.where}"


def test_an_interrupt_loses_nothing() -> None:
    """Wherever it comes, every record is read once, in order: nothing waits for an answer that was lost by it."""
    play(29)


@pytest.mark.full
def test_an_interrupt_at_any_line_loses_nothing() -> None:
    """The same for every line that is run."""
    play(1)
