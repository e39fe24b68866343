"""What claims on values and offsets make suspect: the ledger, and the claims that it was made of. Pure."""

from __future__ import annotations

import numpy as np

from verifier.claims import LOG
from verifier.suspects.rows import LEAST, MOST, Flags, Ints, Places, Rows, before

_ENDS = [f"{end}_{source}" for source in ("ack", "log", "read") for end in ("first", "last")]


def of_ledger(rows: Rows) -> dict[str, Places]:
    """Of rows that sum up all claims on a value, by check."""
    acked, copies, reads = rows.flags("acked"), rows.ints("copies"), rows.ints("reads")
    decidable = rows.known("first_ack") | (rows.ints("from_offset") == 0)
    lost = rows.places(acked & (copies == 0) & decidable)
    unreserved = ~rows.flags("reserved", null=False) | (rows.flags("failed") & ~rows.flags("acked", null=False))
    return {
        "lost-write": lost,
        "log-gap": lost,
        "unseen": rows.places(acked & (copies > 0) & _missed(rows)),
        "duplicate": rows.places(_apart(rows, "read")),
        "log-duplicate": rows.places(_apart(rows, "log")),
        "phantom": rows.places(((copies > 0) | (reads > 0)) & unreserved),
        "log-reorder": _late(rows, rows.ints("first_log"), copies > 0),
        "nonmonotonic-send": _late(rows, *_told(rows)),
        "inconsistent-offsets": rows.places(_unsettled(rows)),
    }


def of_claims(rows: Rows) -> dict[str, Places]:
    """Of single claims: the log says two values of one offset, or a claim cannot be told whose value it is of."""
    placed = rows.where(rows.known("offset"))
    logged = placed.where(placed.ints("source") == LOG).ordered("place", "offset")
    ends = logged.ints("offset") + logged.ints("values")
    overlaps = logged.ints("offset") < before(ends, logged.begins("place"), LEAST)
    return {"inconsistent-offsets": placed.places(~placed.known("stream")) | logged.places(overlaps)}


def _apart(rows: Rows, source: str) -> Flags:
    found: Flags = rows.known(f"first_{source}") & (rows.ints(f"first_{source}") != rows.ints(f"last_{source}"))
    return found


def _missed(rows: Rows) -> Flags:
    """A final reader that came past this value was not handed it."""
    committed_only = np.where(rows.flags("not_owed", null=False), rows.ints("isolated_mask", 0), 0)
    expected = rows.ints("reader_mask", 0) & ~committed_only
    not_behind = rows.ints("sentinel_offset", MOST) >= rows.ints("first_log")
    found: Flags = ((rows.ints("seen", 0) & expected) != expected) & not_behind
    return found


def _told(rows: Rows) -> tuple[Ints, Flags]:
    """Where each value stood for clients, and where that is known."""
    at = np.minimum(rows.ints("first_ack", MOST), rows.ints("first_read", MOST))
    return at, (rows.ints("copies") > 0) & (at != MOST)


def _late(rows: Rows, at: Ints, placed: Flags) -> Places:
    """Of a stream, a later value is below the end of an earlier one."""
    own = rows.having("at", at).where(placed).ordered("place", "stream", "sequence")
    ends = own.ints("at") + own.ints("values") - 1
    return own.places(own.ints("at") < before(ends, own.begins("place", "stream"), LEAST))


def _unsettled(rows: Rows) -> Flags:
    """A value that was acknowledged or read somewhere is not in the log exactly there, or not exactly once."""
    lowest = np.minimum.reduce([rows.ints(name, MOST) for name in _ENDS])
    highest = np.maximum.reduce([rows.ints(name, LEAST) for name in _ENDS])
    claimed = rows.known("first_ack") | rows.known("first_read")
    found: Flags = claimed & ((rows.ints("copies") != 1) | (lowest != highest))
    return found
