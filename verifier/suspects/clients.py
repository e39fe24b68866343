"""What clients were told, and when, makes suspect: rows of histories, and how readers went from row to row. Pure."""

from __future__ import annotations

import numpy as np

from verifier.suspects.rows import LEAST, Places, Rows, reached


def of_history(rows: Rows) -> dict[str, Places]:
    """Of rows of histories, by check."""
    is_poll, is_ok = rows.equal("f", "poll"), rows.equal("type", "ok")
    first, watermark = rows.ints("first_offset"), rows.ints("high_watermark")
    above = is_poll & is_ok & (first >= 0) & (watermark >= 0) & (rows.ints("last_offset") >= watermark)
    undecodable = is_poll & is_ok & (rows.ints("stream") < 0) & rows.known("error")
    followed = rows.equal("f", "poll", "idle") & (watermark >= 0) & rows.equal("phase", "load")
    timed = (rows.ints("invoke_ns") >= 0) & (rows.ints("complete_ns") >= 0)
    told = rows.equal("f", "send", "sentinel") & is_ok & (first >= 0) & (first >= rows.ints("from_offset")) & timed
    return {
        "read-above-watermark": rows.places(above & (rows.ints("complete_ns") >= 0)),
        "phantom": rows.places(undecodable),
        "watermark-regression": _went_down(rows.where(followed)),
        "realtime-order": _overtaken(rows.where(told)),
        "read-before-send": _read_early(rows),
    }


def of_jumps(rows: Rows) -> dict[str, Places]:
    """Of deliveries that do not begin where their reader stood."""
    inside, outside = rows.flags("inside"), ~rows.flags("inside", null=False)
    ahead = rows.ints("first_offset") > rows.ints("expected")
    back = rows.ints("first_offset") < rows.ints("expected")
    return {
        "poll-skip": rows.places(outside & ahead),
        "int-poll-skip": rows.places(inside & ahead),
        "nonmonotonic-poll": rows.places(outside & back),
        "int-nonmonotonic-poll": rows.places(inside & back),
    }


def _went_down(told: Rows) -> Places:
    """A high watermark that is lower than one before it in its session."""
    rows = told.having("reader", told.numbered("process")).ordered("place", "reader", "session", "row")
    watermarks = rows.ints("high_watermark")
    return rows.places(watermarks < reached(watermarks, rows.begins("place", "reader", "session")))


def _overtaken(told: Rows) -> Places:
    """Of acknowledged rows in the order of their offsets, one was acknowledged before one below it was sent; or two
    overlap, or one ends before it begins, and the order says nothing."""
    rows = told.ordered("place", "first_offset", "last_offset")
    begins, invoke, complete = rows.begins("place"), rows.ints("invoke_ns"), rows.ints("complete_ns")
    overlap = rows.ints("first_offset") <= reached(rows.ints("last_offset"), begins)
    return rows.places((complete < reached(invoke, begins)) | (complete < invoke) | overlap)


def _read_early(history: Rows) -> Places:
    """A read that returned before some send of its stream, of these sequences or of lower ones."""
    concerned = history.equal("f", "send", "sentinel", "poll") & ~history.equal("type", "fail")
    rows = history.where(concerned & (history.ints("stream") >= 0))
    is_read = rows.equal("f", "poll")
    reach = np.where(is_read, rows.ints("last_sequence"), rows.ints("first_sequence"))
    # a send that begins where a read ends concerns it
    rows = rows.having("reach", reach).having("is_read", is_read.astype(np.int64))
    rows = rows.ordered("place", "stream", "reach", "is_read")
    is_read = rows.ints("is_read") == 1
    sent = np.where(is_read, LEAST, rows.ints("invoke_ns"))
    latest = reached(sent, rows.begins("place", "stream"))
    return rows.places(is_read & (rows.ints("complete_ns") >= 0) & (rows.ints("complete_ns") < latest))
