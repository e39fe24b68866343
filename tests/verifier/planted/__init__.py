"""One planted example for every anomaly and cause, and for what looks like one and is legal.

Each names exactly what must be found: check and cause, how many, and the value or offset that the example must show.
Each module of this package has the examples of one group of anomalies.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.stories import Story, clean
from tests.verifier.planted import excuses, files, headers, readers, timing, values
from tests.verifier.planted.model import Planted

__all__ = ["PLANTED", "Planted", "planted_story"]

PLANTED: Mapping[str, Planted] = {
    **values.PLANTED,
    **excuses.PLANTED,
    **headers.PLANTED,
    **files.PLANTED,
    **readers.PLANTED,
    **timing.PLANTED,
}


def planted_story(name: str) -> Story:
    """A clean story of one partition and two streams, with the example planted."""
    story = clean()
    PLANTED[name].plant(story)
    return story
