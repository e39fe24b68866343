"""The bounds of what clients may set, of topics and of brokers. An operator may go beyond them.

Owns the bounds. Does not own the keys, nor the requests.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.config.broker import BrokerConfig
from cluster.config.errors import ConfigError

#: Bytes of log for each byte of an index, if every batch has an entry: the smallest batch has 61, an entry up to 12.
_LOG_BYTES_PER_INDEX_BYTE = 5


def check_asked(wanted: Mapping[str, str], stored: Mapping[str, str], broker: BrokerConfig) -> None:
    """What a client may not set although an operator may: segments so small or so short that they become too many,
    files that stay on the disk for too long after they were deleted, and indexes so sparse that lookups take long.

    ``wanted`` and ``stored`` are of a topic or of a broker; what was stored before may stay. ``broker`` is the
    configuration of the broker that is asked. Raises ConfigError.
    """
    for names, bound, divisor in (
        (("segment.bytes", "log.segment.bytes"), "gapless.min.segment.bytes", 1),
        (("segment.index.bytes", "log.index.size.max.bytes"), "gapless.min.segment.bytes", _LOG_BYTES_PER_INDEX_BYTE),
        (("segment.ms", "log.roll.ms"), "gapless.min.segment.ms", 1),
    ):
        least = broker[bound] // divisor
        for name in names:
            value = wanted.get(name)
            if value is not None and value != stored.get(name) and int(value) < least:
                limit = f"{bound} {least}" if divisor == 1 else f"{least}, a fifth of {bound}"
                raise ConfigError(f"config key '{name}' is {value}, below {limit}: each segment is an open file")
    for names, bound, reason in (
        (
            ("file.delete.delay.ms", "log.segment.delete.delay.ms"),
            "gapless.max.file.delete.delay.ms",
            "what is deleted takes room on the disk for this long",
        ),
        (
            ("index.interval.bytes", "log.index.interval.bytes"),
            "gapless.max.index.interval.bytes",
            "a lookup reads each batch between two index entries",
        ),
    ):
        most = broker[bound]
        for name in names:
            value = wanted.get(name)
            if value is not None and value != stored.get(name) and int(value) > most:
                raise ConfigError(f"config key '{name}' is {value}, above {bound} {most}: {reason}")
