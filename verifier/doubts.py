"""A doubt: why a run cannot be called valid, and what it makes blind. Owns the shape and the kinds of evidence.

A doubt that leaves all evidence as it is (a fault that never bit) blinds nothing. One about the evidence itself names
what can no longer be believed; checks that need it are withheld: what they find does not count, so that damaged
evidence never accuses the cluster.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: ``histories``: what clients were told, all or part of it; ``final``: the final state in ``run.json``; ``segments``:
#: the replicas' bytes; ``excuses``: what would excuse an anomaly that the settings permit; ``journals``: from where on
#: each replica is to have what its leader has: the brokers' journals, and the requests to delete in the histories;
#: ``isrs``: when leaders had too few replicas in sync, by their journals;
#: ``clock``: when the run began by the wall clock, and how far that clock moved.
Evidence = Literal["histories", "final", "segments", "excuses", "journals", "isrs", "clock"]

ALL: frozenset[Evidence] = frozenset(("histories", "final", "segments", "excuses", "journals", "isrs", "clock"))
NOTHING: frozenset[Evidence] = frozenset()
HISTORIES: frozenset[Evidence] = frozenset(("histories", "excuses", "journals"))
FINAL: frozenset[Evidence] = frozenset(("final",))
EXCUSES: frozenset[Evidence] = frozenset(("excuses",))
DELETIONS: frozenset[Evidence] = frozenset(("journals",))
JOURNALS: frozenset[Evidence] = DELETIONS | {"isrs"}
CLOCK: frozenset[Evidence] = frozenset(("clock",))


class Doubt(NamedTuple):
    """A reason in one line, and the evidence that can no longer be believed because of it."""

    reason: str
    blinds: frozenset[Evidence] = NOTHING


def blinded(doubts: list[Doubt]) -> frozenset[Evidence]:
    """All the evidence that any of these doubts makes blind."""
    return frozenset().union(*(doubt.blinds for doubt in doubts))
