"""The checks of how many replicas were in sync, asked of a run. Owns the reading of what clients were told then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verifier.checks.under_min_isr import Acknowledged, under_min_isr
from verifier.checks.watermark_under_min_isr import ToldWatermark, watermark_under_min_isr
from verifier.evidence.history import Function
from verifier.evidence.history_parts import history_parts
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.facts import Found
from verifier.in_sync.too_few import TooFew, too_few_in_sync
from verifier.transactions.transaction_checks import summed_up

_ALL = "all"
_SEND: tuple[Function, ...] = ("send",)
_READ: tuple[Function, ...] = ("poll", "idle")
_OK = pa.array(["ok"])


def of_in_sync(directory: RunDirectory, run: RunModel) -> tuple[Found, ...]:
    """What the checks find in a run. Raises ``OSError``."""
    times = too_few_in_sync(directory, run)
    if not times:
        return ()
    histories = directory.history_dir
    found = list(watermark_under_min_isr(times, told_watermarks(histories, times)))
    if run.settings.acks == _ALL:
        found += under_min_isr(times, acknowledged(histories, times))
    return tuple(summed_up(found))


def told_watermarks(histories: Path, times: Sequence[TooFew]) -> Iterator[ToldWatermark]:
    """What readers were told at these times, above the least that may have been told before."""
    known = [each for each in times if each.told is not None]
    if not known:
        return
    first_ns, last_ns = min(each.start_ns for each in known), max(each.end_ns for each in known)
    least = min(each.told for each in known if each.told is not None)
    for part in _parts(histories, _READ):
        at, watermarks = (np.asarray(part[name].to_numpy(), np.int64) for name in ("complete_ns", "high_watermark"))
        wanted = (at > first_ns) & (at < last_ns) & (watermarks > least)
        for row in part.filter(pa.array(wanted)).to_pylist():
            place = row["topic"], row["partition"]
            yield ToldWatermark(place, row["process"], row["session"], row["high_watermark"], row["complete_ns"])


def acknowledged(histories: Path, times: Sequence[TooFew]) -> Iterator[Acknowledged]:
    """The sends that begin and end at these times. A damaged history, which is doubted, says nothing more."""
    for part in _parts(histories, _SEND):
        yield from _of_part(part, times)


def _parts(histories: Path, functions: Sequence[Function]) -> Iterator[pa.Table]:
    """The rows with these functions whose type is ok."""
    for part in history_parts(histories, functions):
        yield part.filter(pc.is_in(part["type"], value_set=_OK))


def _of_part(sends: pa.Table, times: Sequence[TooFew]) -> Iterator[Acknowledged]:
    first_ns, last_ns = min(each.start_ns for each in times), max(each.end_ns for each in times)
    sent, told = (np.asarray(sends[name].to_numpy(), np.int64) for name in ("invoke_ns", "complete_ns"))
    for row in sends.filter(pa.array((sent > first_ns) & (told < last_ns))).to_pylist():
        place = row["topic"], row["partition"]
        at = row["first_offset"], row["invoke_ns"], row["complete_ns"]
        yield Acknowledged(place, row["stream"], row["first_sequence"], *at)
