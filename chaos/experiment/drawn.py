"""What a swarm drew for an experiment: faults and settings. Owns the value; draws nothing (``swarmed`` does)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaos.schedules.swarm import Draw


@dataclass(frozen=True, slots=True)
class Drawn:
    """The drawn faults, and the drawn settings of producers and topic that no option or workload sets."""

    faults: Draw
    producers: Mapping[str, str]
    topic: Mapping[str, str]

    def line(self) -> str:
        """A line for the user about what was drawn."""
        settings = ", ".join(pairs({**self.producers, **self.topic}))
        kinds, at_once = ", ".join(self.faults.kinds), self.faults.at_once
        return f"swarm {self.faults.swarm} drew {kinds}, up to {at_once} at once; {settings or 'no settings'}"

    def to_json(self) -> dict[str, Any]:
        return {"faults": self.faults.to_json(), "producers": dict(self.producers), "topic": dict(self.topic)}


def pairs(mapping: Mapping[str, str]) -> tuple[str, ...]:
    """``KEY=VALUE`` texts, as ``--producer-config`` and the other ``--*-config`` options take them."""
    return tuple(f"{key}={value}" for key, value in mapping.items())
