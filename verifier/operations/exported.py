"""What tells an exported run from other histories: the names of its sentinels, and the errors of what was never sent.

Owns these words, for who writes exports and for who judges one, so that its numbers can be compared with the run's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from verifier.evidence.sequenced_value import SENTINEL_STREAM, value_name

#: Errors of values that a producer took for itself: the client was never handed it, or nothing more was noted.
UNSENT = "reserved and never sent"
FORGOTTEN = "reserved, and never heard of again"
_SENTINEL = re.compile(r"sentinel-[0-9]+/[0-9]+")


def exported_name(stream: int, sequence: int) -> str:
    """``s3/120``; of the last record that a run writes into partition 0, ``sentinel-0/0``."""
    if stream >= SENTINEL_STREAM:
        return f"sentinel-{stream - SENTINEL_STREAM}/{sequence}"
    return value_name(stream, sequence)


def is_sentinel(name: int | str) -> bool:
    """Whether a value has a sentinel's name."""
    return isinstance(name, str) and _SENTINEL.fullmatch(name) is not None


def asides(stats: Mapping[str, Any]) -> dict[str, str]:
    """What is to be told beside a number (by its name in ``stats``) that the run counts in another way."""
    told = {}
    if stats.get("sentinels"):
        told["acked"] = f"{stats['sentinels']:,} of them sentinels, which the run does not count (nor as read)"
    if stats.get("never_sent"):
        told["failed"] = f"{stats['never_sent']:,} of them {UNSENT}, which the run counts apart"
    if stats.get("forgotten"):
        told["unknown"] = f"{stats['forgotten']:,} of them {FORGOTTEN}, which the run counts apart"
    return told
