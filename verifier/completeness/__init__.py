"""Whether the evidence of a run is complete, and the harness was not overloaded. Pure rules over facts.

``valid`` may only be said about a run that passes all of them. Each module has the rules of one kind of evidence; each
doubt is one line for people, and names the evidence that it makes blind.
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
    """Why the evidence does not suffice; empty if it does. The same reason is given once.

    What the run itself says went wrong comes first: the rest often follows from it.
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
    """Doubts with the same reason as one, blind for what any of them is."""
    together: dict[str, Doubt] = {}
    for doubt in found:
        known = together.get(doubt.reason)
        together[doubt.reason] = doubt if known is None else Doubt(doubt.reason, known.blinds | doubt.blinds)
    yield from together.values()
