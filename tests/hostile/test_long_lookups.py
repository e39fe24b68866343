"""Lookups that a client makes long: nothing is left of an index, and all batches have one time."""

from __future__ import annotations

import pytest

from cluster.broker.topic_settings import log_config, log_defaults, topic_settings
from cluster.config import broker as broker_config
from cluster.protocol.errors import ErrorCode
from tests.hostile.absence import Plain
from tests.hostile.test_many_segments import ask

MOST = 65_536


@pytest.mark.integration
def test_index_intervals_have_a_bound(plain: Plain) -> None:
    """INVALID_CONFIG above 64 KB: without index entries, each fetch of an offset read all headers before it."""
    assert plain.create_topic("sparse", 1, index_interval_bytes=str(MOST + 1)) == ErrorCode.INVALID_CONFIG
    assert plain.create_topic("sparse", 1, index_interval_bytes=str(MOST)) == ErrorCode.NONE
    for kind, name, setting in ((2, "sparse", "index.interval.bytes"), (4, "", "log.index.interval.bytes")):
        assert ask(plain, kind, name, setting, 2**31 - 1) == ErrorCode.INVALID_CONFIG
        assert ask(plain, kind, name, setting, 100) == ErrorCode.NONE


def test_what_was_set_before_counts_as_the_bound() -> None:
    """Of a topic, and of the broker that gives it its defaults."""
    for given, of_broker, interval in (
        ({"index.interval.bytes": str(2**31 - 1)}, {}, MOST),
        ({"index.interval.bytes": "100"}, {}, 100),
        ({}, {"log.index.interval.bytes": str(2**31 - 1)}, MOST),
        ({}, {}, 4096),
        ({"index.interval.bytes": "70000"}, {"gapless.max.index.interval.bytes": "80000"}, 70_000),
    ):
        broker = broker_config.validate({"broker.id": "1", **of_broker})
        defaults = log_defaults(broker)
        assert topic_settings("t", given, broker, defaults).log.index_interval_bytes == interval
        if not given:
            assert log_config(broker.topic_defaults(), broker, defaults).index_interval_bytes == interval
