"""The check of how many replicas were in sync, asked of a run. Owns the reading of what was acknowledged then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verifier.checks.under_min_isr import Acknowledged, under_min_isr
from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import stream_history
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.facts import Found
from verifier.in_sync import TooFew, too_few_in_sync
from verifier.transactions.transaction_checks import summed_up

_ALL = "all"
_SEND, _OK = pa.array(["send"]), pa.array(["ok"])


def of_in_sync(directory: RunDirectory, run: RunModel) -> tuple[Found, ...]:
    """What the check finds in a run; nothing with other acks than all. Raises ``OSError``."""
    if run.settings.acks != _ALL or not (times := too_few_in_sync(directory, run)):
        return ()
    return tuple(summed_up(under_min_isr(times, acknowledged(directory.history_dir, times))))


def acknowledged(histories: Path, times: Sequence[TooFew]) -> Iterator[Acknowledged]:
    """The sends that begin and end at these times. A damaged history, which is doubted, says nothing more."""
    for path in sorted(histories.glob("*.arrow")):
        try:
            for part in stream_history(path)[1]:
                sends = part.filter(pc.is_in(part["f"], value_set=_SEND))
                yield from _of_part(sends.filter(pc.is_in(sends["type"], value_set=_OK)), times)
        except HistoryError:
            continue


def _of_part(sends: pa.Table, times: Sequence[TooFew]) -> Iterator[Acknowledged]:
    first_ns, last_ns = min(each.start_ns for each in times), max(each.end_ns for each in times)
    sent, told = (np.asarray(sends[name].to_numpy(), np.int64) for name in ("invoke_ns", "complete_ns"))
    for row in sends.filter(pa.array((sent > first_ns) & (told < last_ns))).to_pylist():
        place = row["topic"], row["partition"]
        at = row["first_offset"], row["invoke_ns"], row["complete_ns"]
        yield Acknowledged(place, row["stream"], row["first_sequence"], *at)
