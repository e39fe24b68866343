"""Whether what load processes left beside their histories and series says the same as these. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifier.closing.closing import Closing
from verifier.doubts import HISTORIES, Doubt
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import TOTALS


def doubts(run: RunModel, closing: Closing) -> Iterator[Doubt]:
    """Where a process's status or Locust's count contradicts its series or its history."""
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
            continue  # a reader's records are those that it was handed
        # Locust leaves out what was acknowledged as it started or stopped; it never counts what was not
        if left.counted is not None and left.counted > acked:
            told = f"{left.counted} records acknowledged by Locust's count, and {acked} by its history"
            yield f"{account.process} had {told}"
