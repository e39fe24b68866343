"""The names and errors by which an exported run is recognized: its sentinels, and values that were never sent.

Owns these texts. The exporter writes them and the judge recognizes them, so that the numbers of both can be compared
with the run's own numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from verifier.evidence.sequenced_value import SENTINEL_STREAM, value_name

#: The errors of values that a producer reserved, but never passed to its client, or for which it noted nothing else.
UNSENT = "reserved and never sent"
FORGOTTEN = "reserved, and never heard of again"
_SENTINEL = re.compile(r"sentinel-[0-9]+/[0-9]+")


def exported_name(stream: int, sequence: int) -> str:
    """The name of a value, such as ``s3/120``. The sentinel of partition 0 is ``sentinel-0/0``."""
    if stream >= SENTINEL_STREAM:
        return f"sentinel-{stream - SENTINEL_STREAM}/{sequence}"
    return value_name(stream, sequence)


def is_sentinel(name: int | str) -> bool:
    """Whether a value has a sentinel's name."""
    return isinstance(name, str) and _SENTINEL.fullmatch(name) is not None


def asides(stats: Mapping[str, Any]) -> dict[str, str]:
    """Name of a number in ``stats`` -> a remark about how the run counts it differently."""
    told = {}
    if stats.get("sentinels"):
        told["acked"] = f"{stats['sentinels']:,} of them sentinels, which the run does not count (nor as read)"
    if stats.get("never_sent"):
        told["failed"] = f"{stats['never_sent']:,} of them {UNSENT}, which the run counts apart"
    if stats.get("forgotten"):
        told["unknown"] = f"{stats['forgotten']:,} of them {FORGOTTEN}, which the run counts apart"
    return told
