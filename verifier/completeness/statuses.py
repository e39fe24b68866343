"""Checks the status files of load processes, and Locust's counts, against their series and histories. Pure.

Owns these doubts; ``verifier.closing`` reads the files.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.closing.closing import Closing
from verifier.doubts import HISTORIES, Doubt
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import TOTALS


def doubts(run: RunModel, closing: Closing) -> Iterator[Doubt]:
    """Processes whose status or Locust count contradicts their series or history."""
    for reason in _contradictions(run, closing):
        yield Doubt(reason, HISTORIES)


def _contradictions(run: RunModel, closing: Closing) -> Iterator[str]:
    for account in closing.accounts:
        left, point = closing.beside.get(account.process), closing.series.get(account.process)
        if left is None or account.state != "closed":
            continue  # a process that was killed may have written one of them and not the other
        if left.status is None:
            yield f"{account.process} left no status"
        elif point is not None:
            for name in TOTALS:
                said, counted = getattr(left.status, name), getattr(point, name)
                if said != counted:
                    yield f"{account.process} says {name} {said} in its status, and {counted} in its last series point"
        acked = account.values("send", "ok")
        declared = run.evidence.process(account.process)
        if declared is None or declared.role != "producers":
            continue  # a reader's count is of records that it received
        # Locust misses records that were acknowledged while it started or stopped, but never counts too many
        if left.counted is not None and left.counted > acked:
            told = f"{left.counted} records acknowledged by Locust's count, and {acked} by its history"
            yield f"{account.process} had {told}"
