"""LogConfig from Kafka's topic keys."""

from __future__ import annotations

import pytest

from cluster.log.config import INT64_MAX, LogConfig


def test_defaults_are_kafkas():
    """Kafka's LogConfig; texts and typed values are both read, what is absent keeps its default."""
    assert LogConfig().segment_bytes == 1_073_741_824 and LogConfig().flush_messages == INT64_MAX
    config = LogConfig.from_mapping(
        {"segment.bytes": "100", "cleanup.policy": "compact, delete", "retention.ms": -1, "min.insync.replicas": 2},
        LogConfig(unknown_producer="kafka"),
    )
    assert (config.segment_bytes, config.cleanup_policy, config.retention_ms) == (100, ("compact", "delete"), -1)
    assert config.unknown_producer == "kafka" and config.is_compacted and not config.is_log_append_time
    assert LogConfig.from_mapping(
        {"cleanup.policy": ("compact",), "message.timestamp.type": "LogAppendTime"}
    ).is_compacted
    names = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
    codecs = [LogConfig.from_mapping({"compression.type": name}) for name in names]
    assert [config.codec for config in codecs] == [None, *range(5)]
    with pytest.raises(ValueError, match="uncompressed"):
        LogConfig.from_mapping({"compression.type": "none"})
    with pytest.raises(ValueError, match="CreateTime"):
        LogConfig.from_mapping({"message.timestamp.type": "Never"})
