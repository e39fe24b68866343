"""What is known of an anomaly by its name: plain data, no Spark. Owns the shape; the anomalies stand in the groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One line for people, what a check may say of one of them (with the words for it), and possible consequences."""

    name: str
    summary: str
    causes: Mapping[str, str] = field(default_factory=dict)
    brings: tuple[str, ...] = ()
