"""Sentences for the anomalies of transactions (``verifier.anomalies.transactions``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from verifier.facts import Found


def _torn(found: Found) -> str:
    detail = found.detail
    outcome = "it has no marker" if detail["outcome"] is None else f"it ends with {detail['outcome']}"
    return f"{_decided(detail)}; in {detail['committed_in']} it is committed, here {outcome}{_at(found)}"


def _markers(found: Found) -> str:
    detail = found.detail
    match found.cause:
        case "missing":
            return f"{_decided(detail)} and completed, and has no marker here"
        case "opposite":
            return f"{_decided(detail)}, and ends with {_marker(detail)}{_at(found)}"
        case "stray":
            ends = (
                "ends nothing" if detail["first_offset"] < 0 else f"ends what began at offset {detail['first_offset']}"
            )
            whose = f"{_marker(detail)} of producer {detail['producer_id']}"
            return f"{whose}{_at(found)} {ends}, which no coordinator decided"
        case _:
            return (
                f"the record at offset {found.offset} decides {detail['decides']} for {detail['transactional_id']!r}, "
                f"which the one at {detail['earlier_offset']} had decided otherwise"
            )


def _hanging(found: Found) -> str:
    detail = found.detail
    return (
        f"broker {detail['broker']}: a transaction of producer {detail['producer_id']}, epoch "
        f"{detail['producer_epoch']}, is open from offset {found.offset} on; {detail['why']}"
    )


def _zombie(found: Found) -> str:
    detail = found.detail
    what = "the marker" if detail["is_marker"] else "the transactional batch"
    return (
        f"broker {detail['broker']}: {what} at offset {found.offset} is of producer {detail['producer_id']}, epoch "
        f"{detail['producer_epoch']}, after epoch {detail['after_epoch']}"
    )


def _decided(detail: Mapping[str, Any]) -> str:
    return (
        f"transaction {detail['number'] + 1} of {detail['transactional_id']!r} (producer {detail['producer_id']}, "
        f"epoch {detail['producer_epoch']}) was decided as {detail['decided']}"
    )


def _marker(detail: Mapping[str, Any]) -> str:
    return f"{detail['marker']} (epoch {detail['marker_epoch']}, coordinator epoch {detail['coordinator_epoch']})"


def _at(found: Found) -> str:
    return "" if found.offset is None else f" at offset {found.offset}"


SENTENCES: Mapping[str, Callable[[Found], str]] = {
    "torn-transaction": _torn,
    "marker-audit": _markers,
    "hanging-transaction": _hanging,
    "zombie-write": _zombie,
}
