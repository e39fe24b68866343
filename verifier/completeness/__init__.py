"""Checks that the evidence of a run is complete, and that the harness was not overloaded. Pure.

Owns these rules: each module has those for one kind of evidence. Each broken rule gives a doubt, which is one line for
people and says which kinds of evidence cannot be trusted. Only a run without doubts can be ``valid``. Does not own the
verdict (``verifier.verdict``) or the kinds of evidence (``verifier.doubts``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from verifier.closing.closing import Closing
from verifier.completeness import (
    belonging,
    clock,
    coordinators,
    declared,
    experiment,
    faults,
    finals,
    histories,
    load,
    replicas,
    sealed,
    settings,
    statuses,
)
from verifier.doubts import Doubt
from verifier.evidence.run_model import RunModel
from verifier.facts import Facts


def incomplete(run: RunModel, facts: Facts, closing: Closing) -> list[Doubt]:
    """All doubts about the evidence; empty if it is complete. No two doubts have the same reason.

    The problems that the run itself recorded come first, because the others often follow from them.
    """
    found = [
        *experiment.problems(run),
        *sealed.doubts(closing),
        *clock.doubts(closing),
        *settings.doubts(run, closing),
        *declared.doubts(run),
        *experiment.doubts(run, closing),
        *finals.doubts(run, facts, closing),
        *histories.doubts(run, closing),
        *belonging.doubts(run, closing),
        *statuses.doubts(run, closing),
        *replicas.doubts(run, facts, closing),
        *coordinators.doubts(run, closing),
        *load.doubts(run, facts, closing),
        *faults.doubts(run, closing),
    ]
    return list(_once(found))


def _once(found: Iterable[Doubt]) -> Iterator[Doubt]:
    """Merges doubts with the same reason; the merged doubt blinds every kind of evidence that one of them blinds."""
    together: dict[str, Doubt] = {}
    for doubt in found:
        known = together.get(doubt.reason)
        together[doubt.reason] = doubt if known is None else Doubt(doubt.reason, known.blinds | doubt.blinds)
    yield from together.values()
