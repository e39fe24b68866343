"""Sentences for the anomalies of values (``verifier.anomalies.values``). Owns these, and no numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifier.explain.value_names import producer_name, value_name
from verifier.facts import Found


def _own(found: Found) -> str:
    return value_name(found.stream, found.sequence)


def _between(found: Found) -> str:
    """The neighbors of a value in its stream that are in the log, as the end of a sentence."""
    before, after = found.context.get("stream_before"), found.context.get("stream_after")
    parts = []
    if before:
        parts.append(f"{value_name(found.stream, before['last_sequence'])} is at {before['last_offset']}")
    if after:
        parts.append(f"{value_name(found.stream, after['first_sequence'])} at {after['first_offset']}")
    return f"; {', '.join(parts)}" if parts else "; nothing else of its stream is in the log"


def _lost_write(found: Found) -> str:
    where = "without an offset" if found.offset is None else f"at offset {found.offset}"
    read = "; a reader had been handed it" if found.detail.get("reads") else "; no reader was ever handed it"
    return f"{_own(found)} was acknowledged {where} and is not in the final log{_between(found)}{read}"


def _unseen(found: Found) -> str:
    return f"{_own(found)} was acknowledged and is at offset {found.offset}, but a final reader skipped it"


def _duplicate(found: Found) -> str:
    first, last = found.detail["first_read"], found.detail["last_read"]
    return f"{_own(found)} was read at offset {first} and again at {last}{_copies(found)}"


def _log_duplicate(found: Found) -> str:
    first, last = found.detail["first_log"], found.detail["last_log"]
    return f"{_own(found)} is at offset {first} and again at {last}{_copies(found)}"


def _copies(found: Found) -> str:
    copies = found.context.get("copies", [])
    if not copies:
        return ""
    return "; copies: " + ", ".join(f"{copy['offset']} ({producer_name(copy)})" for copy in copies)


def _inconsistent_offsets(found: Found) -> str:
    held = [value_name(each.get("stream"), each.get("sequence")) for each in found.context.get("value_at", [])]
    told = [
        f"{each['how']} {value_name(each['stream'], each['sequence'])} ({each['process']})"
        for each in found.context.get("claimed", [])
        if value_name(each["stream"], each["sequence"]) not in held
    ]
    log = f"the final log holds {' and '.join(held)}" if held else "the final log holds nothing"
    return f"at offset {found.offset} {log}, but clients were told: {', '.join(told) or 'something else'}"


def _nonmonotonic_send(found: Found) -> str:
    later = value_name(found.stream, found.detail["after_sequence"])
    return (
        f"{_own(found)} was placed at offset {found.offset}, after {later}, "
        f"sent later, at {found.detail['after_offset']}"
    )


def _log_reorder(found: Found) -> str:
    if found.cause == "offsets":
        detail = found.detail
        return (
            f"on broker {detail['broker']} a batch at byte {detail['position']} begins at offset "
            f"{detail['base_offset']}, though the file had already reached {detail['reached']}"
        )
    later = value_name(found.stream, found.detail["after_sequence"])
    return f"{_own(found)} is at {found.offset}, after {later}, sent later, at {found.detail['after_offset']}"


def _log_gap(found: Found) -> str:
    if found.cause == "offsets":
        return f"no batch covers offsets {found.detail['hole_start']}..{found.detail['hole_end'] - 1}"
    last = found.detail["last_sequence"]
    if last == found.sequence:
        return f"{_own(found)} was acknowledged and is missing{_between(found)}"
    return f"{_own(found)}..{last} were acknowledged and are missing{_between(found)}"


def _log_corrupt(found: Found) -> str:
    detail = found.detail
    where = f"broker {detail['broker']}, segment {detail['segment']:020d}.log, byte {detail['position']}"
    if found.cause == "tail":
        return f"{where}: the file ends in {detail['problem']} bytes, where offset {found.offset} must be"
    if found.cause == "value":
        return f"{where}: {_own(found)} at offset {found.offset} contradicts its own checksum"
    if found.cause == "segment":
        return f"{where}: the batch at offset {found.offset} lies below the offset that names the file"
    return f"{where}: the batch at offset {found.offset}: {detail['problem']}"


def _log_divergence(found: Found) -> str:
    if found.cause == "before":
        held = [
            f"broker {found.detail[f'{end}_broker']} one of epoch {found.detail[f'{end}_epoch']} from offset "
            f"{found.detail[f'{end}_base_offset']} on (CRC {found.detail[f'{end}_crc']})"
            for end in ("least", "most")
        ]
        batch = f"the same batch of leader epoch {found.detail['leader_epoch']} at offset {found.offset}"
        return f"two brokers have {batch}, and before it others: {', '.join(held)}"
    broker = found.detail["broker"]
    if found.cause == "missing":
        return f"broker {broker} lacks the leader's batch at offset {found.offset}"
    if found.cause == "extra":
        return f"broker {broker} has a batch at offset {found.offset} that the leader lacks"
    names = {"crc": "CRC", "leader_epoch": "leader epoch", "next_offset": "next offset", "size_bytes": "size"}
    differences = []
    for name, words in names.items():
        leader, replica = found.detail.get(f"leader_most_{name}"), found.detail.get(f"replica_most_{name}")
        if leader != replica:
            differences.append(f"{words} {replica} instead of {leader}")
    return f"broker {broker} holds another batch at offset {found.offset}: {', '.join(differences)}"


def _phantom(found: Found) -> str:
    if found.cause == "undecodable":
        return f"{found.detail['process']} was handed at offset {found.offset}: {found.detail['error']}"
    if found.cause == "foreign":
        return f"the value at offset {found.offset} is not of this run's load"
    if found.cause == "attributes":
        attributes = int(found.detail["attributes"]) & 0xFFFF
        return f"the batch at offset {found.offset} has attributes {attributes:#06x}, which no producer of the run sets"
    why = "no load process reserved it" if found.cause == "never-reserved" else "its send certainly failed"
    return f"{_own(found)} is at offset {found.offset}, and {why}"


SENTENCES: Mapping[str, Callable[[Found], str]] = {
    "lost-write": _lost_write,
    "unseen": _unseen,
    "duplicate": _duplicate,
    "log-duplicate": _log_duplicate,
    "inconsistent-offsets": _inconsistent_offsets,
    "nonmonotonic-send": _nonmonotonic_send,
    "log-reorder": _log_reorder,
    "log-gap": _log_gap,
    "log-corrupt": _log_corrupt,
    "log-divergence": _log_divergence,
    "phantom": _phantom,
}
