"""Where a check of a produce request needs a decision, the broker's rule makes it."""

from __future__ import annotations

import pytest

from cluster.broker.replicas import produce_checks
from cluster.broker.replicas.produce_checks import check_inside, look_inside, weight_of
from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ACCEPTED, SequenceVerdict, VerdictKind
from cluster.protocol.batch import CODEC_GZIP, CODEC_LZ4, HEADER_BYTES, parse_header
from cluster.protocol.errors import ErrorCode, InvalidBatch
from cluster.protocol.record_checks import Effort
from cluster.protocol.records import NewRecord, build_batch, decode_records
from cluster.protocol.rewriting import with_max_timestamp
from tests.cluster.log.builders import DIRECTORY, NOW_MS, bench

MINUTE_MS = 60_000
BOUNDED = LogConfig(message_timestamp_before_max_ms=MINUTE_MS)
STORED = SequenceVerdict(VerdictKind.DUPLICATE_BELOW_WINDOW)


def check_old_retry(verdict: SequenceVerdict) -> None:
    """A batch of a producer that the log does not know, two minutes old, on a broker whose rule says ``verdict``."""
    on = bench()
    log = PartitionLog.open(
        DIRECTORY, "t", 0, BOUNDED, on.storage, on.clock, clean=True, check_sequence=lambda *_: verdict
    )
    record = NewRecord(NOW_MS - 2 * MINUTE_MS, b"key", b"value", [])
    batch = build_batch([record], producer_id=7, producer_epoch=0, base_sequence=3)
    records = memoryview(bytearray(batch))
    assert check_inside(records, parse_header(batch), log, log.config, NOW_MS, Effort())[0] is records


def test_what_the_rule_calls_stored_is_not_judged_by_its_time() -> None:
    """A retry that has grown too old is no loss (docs/produce-checks.md, row 16)."""
    check_old_retry(STORED)


def test_what_the_rule_calls_news_is_judged_by_its_time() -> None:
    """Whatever the correct rule would say: a defect's rule is the broker's."""
    with pytest.raises(InvalidBatch) as refused:
        check_old_retry(ACCEPTED)
    assert refused.value.error_code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", range(5))
def test_a_wrong_greatest_time_costs_no_new_records(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka writes another one into the header (LogValidator): what is packed stays as it was sent."""
    monkeypatch.delattr(produce_checks, "decode_records")
    right = build_batch([NewRecord(NOW_MS + index % 7, b"k", b"v") for index in range(50)], codec=codec)
    sent = with_max_timestamp(right, parse_header(right), NOW_MS + 99)
    _, wrong_times, instead = look_inside(memoryview(sent), parse_header(sent), LogConfig(), Effort())
    assert (wrong_times, instead) == ([], right)
    assert instead is not None and instead[HEADER_BYTES:] == sent[HEADER_BYTES:]
    other = LogConfig(codec=CODEC_GZIP if codec != CODEC_GZIP else CODEC_LZ4)
    _, _, packed = look_inside(memoryview(sent), parse_header(sent), other, Effort())
    assert packed is not None and parse_header(packed).max_timestamp == NOW_MS + 6
    assert decode_records(packed) == decode_records(right)


def test_half_a_million_records_in_few_bytes_are_heavy() -> None:
    """They take longer than an honest batch of many more bytes, which does not wait for several of them."""
    header = parse_header(build_batch([NewRecord(NOW_MS, None, b"v")]))
    bomb = header._replace(batch_length=450, record_count=499_000)
    assert weight_of(bomb) > weight_of(header._replace(batch_length=1_000_000, record_count=15_000))
