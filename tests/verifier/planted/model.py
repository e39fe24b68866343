"""The shape of a planted example: what is done to a clean story, and exactly what must be found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.stories import Story


@dataclass(frozen=True)
class Planted:
    """``expected``: (check, cause) -> what the example must show, by field name of ``Found``.

    ``neighbor``: the name of what looks most like it and is legal, so that nothing of this may be found there.
    """

    plant: Callable[[Story], None]
    expected: Mapping[tuple[str, str | None], Mapping[str, Any]] = field(default_factory=dict)
    neighbor: str | None = None
