"""The names of values, batches and producers in sentences. Owns these names. Pure.

The name of sequence 120 of stream 3 is ``s3/120``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifier.evidence import sequenced_value


def value_name(stream: int | None, sequence: int | None) -> str:
    """The name of a value, such as ``s3/120``; a text in its place if the stream is unknown."""
    if stream is None:
        return "an unreadable value"
    return sequenced_value.value_name(stream, "?" if sequence is None else sequence)


def producer_name(batch: Mapping[str, Any]) -> str:
    """Producer id, epoch and base sequence of a batch."""
    if batch["producer_id"] < 0:
        return "no producer id"
    return f"producer {batch['producer_id']}, epoch {batch['producer_epoch']}, base sequence {batch['base_sequence']}"
