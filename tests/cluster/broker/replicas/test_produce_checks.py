"""Where a check of a produce request needs a decision, the broker's rule makes it."""

from __future__ import annotations

import pytest

from cluster.broker.replicas.produce_checks import check_inside
from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ACCEPTED, SequenceVerdict, VerdictKind
from cluster.protocol.batch import parse_header
from cluster.protocol.errors import ErrorCode, InvalidBatch
from cluster.protocol.record_checks import Effort
from cluster.protocol.records import NewRecord, build_batch
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
