"""Sentences for the anomalies of transactions (``verifier.anomalies.transactions``). Owns these, and no numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from verifier.evidence.units import ms_of_ns
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
        case "former-epoch":
            return (
                f"{_marker(detail)} of producer {detail['producer_id']}{_at(found)} ends what began at offset "
                f"{detail['first_offset']} in epoch {detail['begun_epoch']}, which no coordinator decided"
            )
        case "former-coordinator":
            return (
                f"{_marker(detail)} of producer {detail['producer_id']}{_at(found)} comes after {detail['after']} of "
                f"coordinator epoch {detail['after_epoch']}"
            )
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


def _handed(found: Found) -> str:
    detail = found.detail
    first, last = detail["first_sequence"], detail["last_sequence"]
    values = f"s{detail['stream']}/{first}" + ("" if first == last else f" to s{detail['stream']}/{last}")
    read = f"{detail['reader']} read {values}{_at(found)}, of transaction {detail['number']} of {detail['process']}"
    if found.check == "G1a":
        return f"{read}, which was not committed"
    early_ms = round(ms_of_ns(detail["asked_ns"] - detail["read_ns"]), 1)
    return f"{read}, {early_ms} ms before its commit was asked for"


def _aborted_commit(found: Found) -> str:
    detail = found.detail
    return (
        f"{detail['process']} was told that its transaction {detail['number']} (producer {detail['producer_id']}) is "
        f"committed; what it wrote{_at(found)} is ended by {_marker(detail)} at offset {detail['marker_offset']}"
    )


def _undecided_commit(found: Found) -> str:
    detail = found.detail
    return (
        f"{detail['process']} was told that its transaction {detail['number']} (producer {detail['producer_id']}) is "
        f"committed; what it wrote{_at(found)} is in no decision of its own that has all its partitions (of the "
        f"producer's commits, {detail['told']} were told and {detail['decided']} decided)"
    )


def _bank(found: Found) -> str:
    detail = found.detail
    side, other = (f"s{detail[name]}/{detail['sequence']}" for name in ("stream", "lacks"))
    return (
        f"{detail['reader']} read {side} ({detail['amount']:+d}){_at(found)} and not {other} as often; by what it "
        f"read, the accounts are off by {detail['off']:+d}"
    )


def _cycle(found: Found) -> str:
    steps = [_step(step) for step in found.detail["steps"]]
    return f"a cycle of {len(steps)} of {found.detail['size']} connected transactions: {'; '.join(steps)}"


def _step(step: Mapping[str, Any]) -> str:
    where = f"{step['place']} at offset {step['offset']}"
    if step["edge"] == "wr":
        return f"{step['to']} read what {step['from']} wrote to {where}"
    late = f", which was committed before {step['from']} began" if step["is_backwards"] else ""
    return f"{step['from']} wrote right before what is in {where}, of {step['to']}{late}"


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
    "G1a": _handed,
    "precommitted-read": _handed,
    "aborted-commit": _aborted_commit,
    "undecided-commit": _undecided_commit,
    "bank-total": _bank,
    "G1c": _cycle,
    "G0": _cycle,
    "torn-transaction": _torn,
    "marker-audit": _markers,
    "hanging-transaction": _hanging,
    "zombie-write": _zombie,
}
