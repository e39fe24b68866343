"""Sentences for the anomalies of batch headers (``verifier.anomalies.headers``). Owns these, and no numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from verifier.evidence.units import seconds_of_ms
from verifier.explain.value_names import producer_name
from verifier.facts import Found


def _where(found: Found) -> str:
    detail = found.detail
    return f"broker {detail['broker']}, segment {detail['segment']:020d}.log, byte {detail['position']}"


def _epoch_regression(found: Found) -> str:
    detail = found.detail
    return (
        f"{_where(found)}: the batch at offset {found.offset} is of leader epoch {detail['leader_epoch']}, "
        f"after one of epoch {detail['after_epoch']}"
    )


def _producer_epoch_regression(found: Found) -> str:
    return (
        f"{_where(found)}: the batch at offset {found.offset} ({producer_name(found.detail)}) comes after one of "
        f"epoch {found.detail['after_epoch']} of the same producer"
    )


def _sequence_gap(found: Found) -> str:
    detail = found.detail
    told = f"the batch at offset {found.offset} ({producer_name(detail)})"
    if found.cause == "first":
        return f"{told} is the first of its epoch and does not begin at 0"
    direction = "goes back before" if found.cause == "backwards" else "skips"
    return f"{told} {direction} sequence {detail['expected']}, which was expected"


def _sequence_duplicate(found: Found) -> str:
    detail = found.detail
    return f"{producer_name(detail)} is at offset {detail['first_offset']} and again at {detail['last_offset']}"


def _unknown_producer_id(found: Found) -> str:
    below = found.detail.get("producer_ids_below")
    handed_out = "ids begin at 0" if below is None else f"only ids below {below} were ever handed out"
    told = f"the batch at offset {found.offset} is of producer {found.detail['producer_id']}"
    return f"{_where(found)}: {told}; {handed_out}"


def _timestamp_outside_run(found: Found) -> str:
    detail = found.detail
    before = found.cause == "before"
    timestamps = detail["base_timestamp"], detail["max_timestamp"]
    bound = f"after {_time(detail['earliest_ms'])}" if before else f"before {_time(detail['latest_ms'])}"
    timestamp = min(timestamps) if before else max(timestamps)
    return f"{_where(found)}: the batch at offset {found.offset} is of {_time(timestamp)}; the run was {bound}"


def _time(milliseconds: int) -> str:
    """A timestamp in ms as text: in UTC if its year is from 1970 to 2286, else the bare number."""
    if 0 <= milliseconds < 10_000_000_000_000:
        return f"{datetime.fromtimestamp(seconds_of_ms(milliseconds), UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{milliseconds} ms"


def _split_brain(found: Found) -> str:
    detail = found.detail
    brokers = {detail["least_broker"], detail["most_broker"]}
    where = f"brokers {min(brokers)} and {max(brokers)} hold" if len(brokers) > 1 else f"broker {min(brokers)} holds"
    return (
        f"{where} different batches of leader epoch {detail['leader_epoch']} at offset {found.offset}: "
        f"CRC {detail['least_crc']} ({detail['least_size_bytes']} bytes at least) and {detail['most_crc']} "
        f"({detail['most_size_bytes']} at most)"
    )


def _internal_divergence(found: Found) -> str:
    detail = found.detail
    told = {"different": "has something else than", "missing": "lacks what is on", "extra": "has what is not on"}
    return f"broker {detail['broker']} {told[str(found.cause)]} broker {detail['judged']} at offset {found.offset}"


SENTENCES: Mapping[str, Callable[[Found], str]] = {
    "epoch-regression": _epoch_regression,
    "producer-epoch-regression": _producer_epoch_regression,
    "sequence-gap": _sequence_gap,
    "sequence-duplicate": _sequence_duplicate,
    "unknown-producer-id": _unknown_producer_id,
    "timestamp-outside-run": _timestamp_outside_run,
    "split-brain": _split_brain,
    "internal-divergence": _internal_divergence,
}
