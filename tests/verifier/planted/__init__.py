"""Planted examples for every anomaly and cause, and for what looks like one and is legal.

Each names exactly what must be found: check and cause, how many, and the value or offset that the example must show.
Each module of this package has the examples of one group; ``changes`` is what several of them do to a story.
``pairs`` is the table of every check beside a planted example and its nearest legal neighbor.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.stories import Story, clean
from tests.verifier.planted import (
    claims,
    copies,
    deletions,
    elections,
    excuses,
    files,
    groups,
    headers,
    in_sync,
    internal,
    late,
    losses,
    orders,
    readers,
    refusals,
    replicas,
    serving,
    timing,
    told_in_sync,
    transactions,
    unclean,
    unsettled,
)
from tests.verifier.planted.model import Planted

__all__ = ["PLANTED", "Planted", "planted_story"]

_GROUPS = (
    losses,
    deletions,
    copies,
    replicas,
    claims,
    excuses,
    refusals,
    elections,
    late,
    headers,
    files,
    readers,
    timing,
    serving,
    in_sync,
    told_in_sync,
    unclean,
    orders,
    unsettled,
    transactions,
    groups,
    internal,
)

PLANTED: Mapping[str, Planted] = {name: each for group in _GROUPS for name, each in group.PLANTED.items()}


def planted_story(name: str) -> Story:
    """A clean story of one partition and two streams, with the example planted."""
    story = clean()
    PLANTED[name].plant(story)
    return story
