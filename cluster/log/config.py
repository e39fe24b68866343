"""LogConfig: the settings of one partition's log, read from Kafka's topic keys.

Owns the defaults (Kafka 3.8's) and which key is which field. Does not own unknown keys, limits or what a broker's
keys mean for its topics: ``cluster.config`` has settled them before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cluster.protocol.batch import CODEC_NONE
from cluster.protocol.compression import CODEC_NAMES

INT64_MAX = 2**63 - 1
HOUR_MS = 3_600_000
MINUTE_MS = 60_000

UnknownProducer = Literal["gapless", "kafka", "seed"]


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of one log. ``flush_messages``, ``flush_ms`` and the timestamp bounds are off at INT64_MAX.

    ``codec`` is the one that batches are stored with, None for their producer's own.
    ``unknown_producer`` (a broker's setting, not a topic's) says what becomes of a batch whose producer the log does
    not know (``sequence.py``), ``max_producers`` (a broker's too) how many producers it remembers.
    ``min_segment_bytes`` and ``min_segment_ms`` (a broker's too, off at 0) bound what clients' timestamps do
    (``roll.py``).
    """

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 168 * HOUR_MS
    segment_jitter_ms: int = 0
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10_485_760
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_after_max_ms: int = INT64_MAX
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    unknown_producer: UnknownProducer = "gapless"
    max_producers: int = 10_000
    min_segment_bytes: int = 0
    min_segment_ms: int = 0
    codec: int | None = None
    retention_ms: int = 168 * HOUR_MS
    retention_bytes: int = -1
    cleanup_policy: tuple[str, ...] = ("delete",)
    delete_retention_ms: int = 24 * HOUR_MS
    file_delete_delay_ms: int = MINUTE_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = INT64_MAX
    min_cleanable_dirty_ratio: float = 0.5

    # What follows from these. Kept, since every append asks for it.
    is_log_append_time: bool = field(init=False, repr=False, compare=False)
    #: Whether holes in the offsets are legal, because compaction made them.
    is_compacted: bool = field(init=False, repr=False, compare=False)
    #: ``segment.ms``, or less where records must be compacted sooner: the active segment never is.
    longest_segment_ms: int = field(init=False, repr=False, compare=False)
    #: Whether records' own timestamps are checked.
    bounds_timestamps: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        stamps = self.message_timestamp_type == "LogAppendTime"
        compacted = "compact" in self.cleanup_policy
        bounds_ms = min(self.message_timestamp_before_max_ms, self.message_timestamp_after_max_ms)
        segment_ms = min(self.segment_ms, self.max_compaction_lag_ms) if compacted else self.segment_ms
        self._derive("is_log_append_time", stamps)
        self._derive("is_compacted", compacted)
        self._derive("longest_segment_ms", segment_ms)
        self._derive("bounds_timestamps", not stamps and bounds_ms < INT64_MAX)

    def _derive(self, name: str, value: bool | int) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def from_mapping(cls, topic_config: Mapping[str, Any], defaults: LogConfig | None = None) -> LogConfig:
        """From Kafka's topic keys (``segment.bytes``); what is absent is taken from ``defaults``.

        Values may be texts or already typed. Keys that are not about a log are ignored. Raises ``ValueError``.
        """
        return replace(defaults or cls(), **_read(topic_config))


_TOPIC_KEYS = {
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "segment.jitter.ms": "segment_jitter_ms",
    "index.interval.bytes": "index_interval_bytes",
    "segment.index.bytes": "segment_index_bytes",
    "max.message.bytes": "max_message_bytes",
    "message.timestamp.type": "message_timestamp_type",
    "message.timestamp.before.max.ms": "message_timestamp_before_max_ms",
    "message.timestamp.after.max.ms": "message_timestamp_after_max_ms",
    "flush.messages": "flush_messages",
    "flush.ms": "flush_ms",
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "cleanup.policy": "cleanup_policy",
    "delete.retention.ms": "delete_retention_ms",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
    "min.cleanable.dirty.ratio": "min_cleanable_dirty_ratio",
    "compression.type": "codec",
}

_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_CODECS = {
    "producer": None,
    "uncompressed": CODEC_NONE,
    **{name: codec for codec, name in CODEC_NAMES.items() if codec},
}


def _read(mapping: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, name in _TOPIC_KEYS.items():
        raw = mapping.get(key)
        if raw is None:
            continue
        if name == "cleanup_policy":
            parts = raw.split(",") if isinstance(raw, str) else raw
            values[name] = tuple(part.strip() for part in parts)
        elif name == "message_timestamp_type":
            if raw not in _TIMESTAMP_TYPES:
                raise ValueError(f"{key} is {raw!r}, not one of {', '.join(_TIMESTAMP_TYPES)}")
            values[name] = raw
        elif name == "codec":
            if raw not in _CODECS:
                raise ValueError(f"{key} is {raw!r}, not one of {', '.join(_CODECS)}")
            values[name] = _CODECS[raw]
        elif name == "min_cleanable_dirty_ratio":
            values[name] = float(raw)
        else:
            values[name] = int(raw)
    return values
