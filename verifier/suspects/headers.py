"""What batches on disk make suspect: their headers, their order, and what other replicas have beside them. Pure."""

from __future__ import annotations

import numpy as np

from verifier.suspects.rows import LEAST, MOST, Flags, Places, Rows, before, reached

#: As in ``checks.sequence_gap``.
SEQUENCES = 1 << 31
CONTROL = 0x20
#: As in ``checks.phantom``.
UNASKED = ~0x0F
OF_TRANSACTIONS = (0x10, 0x30)


def of_batches(rows: Rows, replicas: Rows) -> dict[str, Places]:
    """Of rows that describe batches or whole files, by check."""
    is_batch = rows.equal("kind", "batch")
    below = rows.ints("base_offset") < rows.ints("limit")
    problem = rows.known("problem")
    misplaced = rows.ints("base_offset") < rows.ints("segment")
    tail = ~is_batch & problem & (rows.ints("next_offset") < rows.ints("limit"))
    sound = is_batch & ~problem
    leaders = is_batch & below & rows.flags("is_leader")
    return {
        "log-corrupt": rows.places((is_batch & below & (problem | misplaced)) | tail),
        "phantom": rows.places(leaders & sound & _unasked(rows)),
        "unknown-producer-id": rows.places(sound & _unknown_producer(rows)),
        "timestamp-outside-run": rows.places(sound & _outside(rows)),
        "log-reorder": _reordered(rows.where(is_batch & below)),
        "epoch-regression": _regressed(rows.where(sound & below)),
        "log-gap": _gaps(rows.where(leaders), replicas),
        "log-divergence": _diverging(rows.where(is_batch & below & (rows.ints("next_offset") > rows.ints("start")))),
        "split-brain": _split(rows.where(sound)),
        **_of_producers(rows.where(leaders & (rows.ints("next_offset") > rows.ints("start")))),
    }


def of_unsettled(rows: Rows) -> dict[str, Places]:
    """Of rows that describe sound batches of replicas that did not settle."""
    return {
        "log-reorder": _reordered(rows),
        "epoch-regression": _regressed(rows),
        "split-brain": _split(rows),
        "log-divergence": _preceded(rows),
    }


def of_spans(rows: Rows) -> dict[str, Places]:
    """Of rows that describe values."""
    return {
        "log-corrupt": rows.places(rows.equal("value_problem", "payload")),
        "phantom": rows.places(rows.equal("value_problem", "foreign", "run")),
    }


def _unasked(rows: Rows) -> Flags:
    attributes = rows.ints("attributes") & UNASKED
    of_transactions = rows.flags("is_transactional", null=False) & np.isin(attributes, OF_TRANSACTIONS)
    found: Flags = (attributes != 0) & ~of_transactions
    return found


def _unknown_producer(rows: Rows) -> Flags:
    producer_id = rows.ints("producer_id")
    return (producer_id < -1) | (producer_id >= rows.ints("producer_ids_below", MOST))


def _outside(rows: Rows) -> Flags:
    base, newest = rows.ints("base_timestamp", 0), rows.ints("max_timestamp", 0)
    too_early = np.minimum(base, newest) < rows.ints("earliest_ms", LEAST)
    return too_early | (np.maximum(base, newest) > rows.ints("latest_ms", MOST))


def _reordered(batches: Rows) -> Places:
    """A batch begins below what the ones before it in the log reached."""
    rows = batches.ordered("place", "broker", "segment", "position")
    upto = reached(rows.ints("next_offset"), rows.begins("place", "broker"))
    return rows.places(rows.ints("base_offset") < upto)


def _regressed(batches: Rows) -> Places:
    rows = batches.ordered("place", "broker", "segment", "position")
    epochs = rows.ints("leader_epoch")
    return rows.places(epochs < reached(epochs, rows.begins("place", "broker")))


def _gaps(batches: Rows, replicas: Rows) -> Places:
    """A batch begins above what those below it reached, or the last one ends below the limit."""
    leaders = replicas.where(replicas.flags("is_leader", null=False))
    rows = batches.ordered("place", "base_offset", "next_offset")
    begins = rows.begins("place")
    start, ends = rows.ints("start"), rows.ints("next_offset")
    upto = np.maximum(start, reached(ends, begins))
    is_last = np.concatenate([begins[1:], [True]])[: len(rows)]
    short = is_last & (np.maximum(upto, ends) < rows.ints("limit"))
    without = ~np.isin(leaders.ints("place"), rows.ints("place")) & (leaders.ints("start") < leaders.ints("limit"))
    return rows.places((rows.ints("base_offset") > upto) | short) | leaders.places(without)


def _diverging(batches: Rows) -> Places:
    """Not every replica has the very same one batch at each offset."""
    rows = batches.ordered("place", "base_offset", "broker")
    begins = rows.begins("place", "base_offset")
    differs = ~begins & (rows.ints("broker") == before(rows.ints("broker"), begins, -1))
    for name in ("crc", "leader_epoch", "next_offset", "size_bytes"):
        differs |= ~begins & (rows.ints(name) != before(rows.ints(name), begins, 0))
    starts = np.flatnonzero(begins)
    sizes = np.diff(np.append(starts, len(rows)))
    incomplete = np.zeros(len(rows), dtype=np.bool_)
    incomplete[starts] = sizes != rows.ints("brokers")[starts]
    return rows.places(differs | incomplete)


def _split(batches: Rows) -> Places:
    rows = batches.ordered("place", "leader_epoch", "base_offset")
    begins = rows.begins("place", "leader_epoch", "base_offset")
    differs = np.zeros(len(rows), dtype=np.bool_)
    for name in ("crc", "size_bytes", "next_offset"):
        differs |= ~begins & (rows.ints(name) != before(rows.ints(name), begins, 0))
    return rows.places(differs)


def _preceded(batches: Rows) -> Places:
    """The same epoch and offset stand behind different batches in two logs."""
    log = ("place", "broker")
    ordered = batches.ordered(*log, "segment", "position")
    begins = ordered.begins(*log)
    names = ("leader_epoch", "base_offset", "crc", "size_bytes")
    for name in names:
        ordered = ordered.having(f"before_{name}", before(ordered.ints(name), begins, LEAST))
    # what follows nothing, or does not follow right behind, has no one before it
    follows = ~begins & (before(ordered.ints("next_offset"), begins, LEAST) == ordered.ints("base_offset"))
    rows = ordered.where(follows).ordered("place", "leader_epoch", "base_offset")
    same = rows.begins("place", "leader_epoch", "base_offset")
    differs = np.zeros(len(rows), dtype=np.bool_)
    for name in names:
        earlier = rows.ints(f"before_{name}")
        differs |= ~same & (earlier != before(earlier, same, 0))
    return rows.places(differs)


def _of_producers(batches: Rows) -> dict[str, Places]:
    """Of the batches of the final leaders' logs: those that carry a sequence."""
    carries = (batches.ints("producer_id") >= 0) & (batches.ints("base_sequence") >= 0)
    numbered = batches.where(carries & (batches.ints("attributes") & CONTROL == 0))
    return {
        "producer-epoch-regression": _fenced(numbered.where(~numbered.known("problem"))),
        "sequence-gap": _sequence_gaps(numbered),
        "sequence-duplicate": _sequence_twice(numbered),
    }


def _fenced(batches: Rows) -> Places:
    rows = batches.ordered("place", "producer_id", "base_offset", "segment", "position")
    epochs = rows.ints("producer_epoch")
    return rows.places(epochs < reached(epochs, rows.begins("place", "producer_id")))


def _sequence_gaps(batches: Rows) -> Places:
    rows = batches.ordered("place", "producer_id", "producer_epoch", "base_offset", "segment", "position")
    begins = rows.begins("place", "producer_id", "producer_epoch")
    told = rows.ints("base_sequence")
    expected = before(told + rows.ints("next_offset") - rows.ints("base_offset"), begins, 0) % SEQUENCES
    may_begin_anywhere = (rows.ints("start") > 0) | ~rows.flags("begins_at_zero")
    return rows.places((told != expected) & ~(begins & may_begin_anywhere))


def _sequence_twice(batches: Rows) -> Places:
    key = ("place", "producer_id", "producer_epoch", "base_sequence")
    rows = batches.ordered(*key, "base_offset")
    begins = rows.begins(*key)
    return rows.places(~begins & (rows.ints("base_offset") != before(rows.ints("base_offset"), begins, 0)))
