"""Times that cannot be: refused when they are sent, and no end of anybody's compaction when they are there (H7)."""

from __future__ import annotations

import asyncio
import logging
import struct

import pytest
from crc32c import crc32c

from cluster.broker.timers import Timers
from cluster.log.errors import LogError
from cluster.protocol.batch import CODEC_GZIP
from cluster.protocol.compression import compress
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import write_varint
from tests.cluster.broker.scenes import TOPIC, with_topic
from tests.cluster.broker.test_housekeeping import COMPACTING, Bench
from tests.cluster.log.builders import append
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

MOST = 2**63 - 1


def record(index: int, delta: int) -> bytes:
    body = b"\0" + write_varint(delta) + write_varint(index) + write_varint(1) + b"k" + write_varint(1) + b"v\0"
    return write_varint(len(body)) + body


def timed(base: int, deltas: list[int], greatest: int, codec: int = 0) -> bytearray:
    """A batch whose header and records say these times."""
    payload = compress(codec, b"".join(record(index, delta) for index, delta in enumerate(deltas)))
    checked = struct.pack(">hiqqqhii", codec, len(deltas) - 1, base, greatest, -1, -1, -1, len(deltas)) + payload
    return bytearray(struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c(checked)) + checked)


#: base, deltas, what the header says is the greatest.
IMPOSSIBLE = [
    pytest.param(MOST - 5, [0, 100], MOST - 5, id="beyond 64 bits"),
    pytest.param(MOST - 5, [0, 5], MOST, id="the very last"),
    pytest.param(0, [-1, MOST], MOST, id="too far from each other"),
    pytest.param(-(2**63), [0, MOST], -1, id="a base before all time"),
    pytest.param(5, [0, -100], 5, id="negative"),
    pytest.param(5, [0, 2**68], 5, id="a delta of 69 bits"),
]


@pytest.mark.parametrize("codec", [0, CODEC_GZIP])
@pytest.mark.parametrize("policy", ["compact", "delete"])
@pytest.mark.parametrize(("base", "deltas", "greatest"), IMPOSSIBLE)
def test_impossible_times_are_refused(base: int, deltas: list[int], greatest: int, codec: int, policy: str) -> None:
    """INVALID_TIMESTAMP, on a connection that goes on; no timestamp, and the year 292,277,026, are fine."""

    async def check(_cluster: MemoryCluster, client: Client) -> None:
        refused = await client.produce(TOPIC, bytes(timed(base, deltas, greatest, codec)))
        assert refused.error is ErrorCode.INVALID_TIMESTAMP
        for times in ([-1, MOST - 1], [0, MOST - 1]):
            batch_of_times = bytes(timed(times[0], [0, times[1] - times[0]], times[1], codec))
            assert (await client.produce(TOPIC, batch_of_times)).error is ErrorCode.NONE
        assert (await client.produce(TOPIC, batch(b"a", key=b"k"))).error is ErrorCode.NONE

    with_topic(check, log_cleanup_policy=policy)


@pytest.mark.parametrize(("base", "deltas", "greatest"), IMPOSSIBLE)
def test_a_log_that_holds_them_does_not_end_compaction(
    base: int, deltas: list[int], greatest: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As an older broker stored them: a log that cannot be compacted is named once and left; the others are compacted,
    now and later."""

    async def main() -> None:
        bench = Bench()
        bench.fill("poisoned", COMPACTING, 2)
        log = bench.logs.get("poisoned", 0)
        assert log is not None
        append(log, timed(base, deltas, greatest))
        bench.fill("poisoned", COMPACTING, 20)
        bench.fill("good", COMPACTING, 8)
        bench.housekeeping.start()
        await asyncio.sleep(40)
        good = bench.logs.get("good", 0)
        assert good is not None
        assert good.cleaned_to == good.segment_base_offsets[-1]
        bench.fill("good", COMPACTING, 8)
        await asyncio.sleep(20)
        assert good.cleaned_to == good.segment_base_offsets[-1]
        # A new batch can say what 64 bits hold, and nothing else: of the other four the log is compacted.
        is_uncleanable = any(not -(2**63) <= base + delta <= MOST for delta in deltas)
        assert log.is_uncleanable == (log.cleaned_to == 0) == is_uncleanable
        assert caplog.text.count("poisoned-0 cannot be compacted") == is_uncleanable
        await bench.housekeeping.stop()
        assert not bench.failures

    with caplog.at_level(logging.ERROR):
        run(main())


def test_periodic_work_survives_whatever_it_raises(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its traceback, and done again at its time; a disk that failed is told, as before."""
    failures: list[LogError] = []
    turns: list[int] = []

    async def work() -> None:
        turns.append(len(turns))
        if len(turns) == 1:
            raise struct.error("int too large to convert")
        if len(turns) == 2:
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")

    async def main() -> None:
        timers = Timers(failures.append)
        timers.start([(1000, work)])
        await asyncio.sleep(4.5)
        await timers.stop()

    run(main())
    assert turns == [0, 1, 2, 3]
    assert [failure.message for failure in failures] == ["the disk is gone"]
    assert "struct.error: int too large to convert" in caplog.text
