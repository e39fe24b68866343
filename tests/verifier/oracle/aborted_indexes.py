"""The check of the indexes of aborted transactions once more: each against the batches beside it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.verifier.oracle.model import Anomaly, Evidence
from tests.verifier.oracle.transaction_logs import Row, read_rows


def aborted_index_audit(evidence: Evidence) -> Iterator[Anomaly]:
    """One for each marker or entry that is wrong, of logs that nothing was taken from."""
    for broker in evidence.brokers:
        if broker not in evidence.homes:
            continue
        home = evidence.homes[broker]
        clean = (home.parent / ".kafka_cleanshutdown").exists()
        clean |= [c.exit_code for c in evidence.run.children if c.name == f"broker-{broker}"][-1:] == [0]
        bases = sorted(int(path.stem) for path in home.glob("*.log"))
        log = read_rows(home)
        for number, base in enumerate(bases):
            end = bases[number + 1] if number + 1 < len(bases) else 1 << 62
            path = home / f"{base:020d}.txnindex"
            data = path.read_bytes() if path.exists() else b""
            until = [row for row in log if row.offset < end]
            shifted = [row for row in until[1:] if row.offset != until[until.index(row) - 1].end]
            broken = shifted or any(row.count != row.end - row.offset for row in until)
            broken = broken or (until and until[0].offset != bases[0])
            if (
                broken
                or any(row.what == "unreadable" and row.count for row in until)
                or not (clean or base != bases[-1])
            ):
                continue
            wrong = wrong_entries(data, [row for row in until if row.what], base, bases[0])
            if wrong is not None:
                yield from [
                    Anomaly("aborted-index-audit", None, evidence.final.partition, None, None, wrong[0])
                    for _ in range(wrong[1])
                ]


def wrong_entries(data: bytes, rows: list[Row], base: int, begins: int) -> tuple[int | None, int] | None:
    """The lowest marker of which the index is wrong, and of how many it is."""
    if len(data) % 34:
        return None, 1
    entries = [struct.unpack_from(">hqqqq", data, at) for at in range(0, len(data), 34)]
    if any(entry[0] for entry in entries):
        return None, 1
    expected: dict[int, tuple[int, int, int, int]] = {}
    for at, row in enumerate(rows):
        if row.what != "ABORT" or row.offset < base:
            continue
        opened = {}
        for each in rows[:at]:
            if each.what == "data":
                opened.setdefault(each.producer_id, each.offset)
            else:
                opened.pop(each.producer_id, None)
        first = opened.pop(row.producer_id, -1)
        expected[row.offset] = (row.producer_id, first, row.offset, min(opened.values(), default=row.offset + 1))
    wrong = {marker for marker, entry in expected.items() if entry[1] >= 0 and all(e[3] != marker for e in entries)}
    for at, (_, producer, first, marker, stable) in enumerate(entries):
        right = expected.get(marker)
        fits = right is not None and (producer, marker) == (right[0], right[2])
        if fits and right is not None:
            fits = first >= 0 and (first == right[1] or first < begins)
            fits = fits and (stable == right[3] or 0 <= stable < begins)
        if not fits or any(before[3] >= marker for before in entries[:at]):
            wrong.add(marker)
    return (max(min(wrong), 0), len(wrong)) if wrong else None


CHECKS = (aborted_index_audit,)
