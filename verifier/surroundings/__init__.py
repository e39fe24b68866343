"""What surrounds anomalies, read from a run's files when the report is made: bytes, claims, log lines, leaders.

Shows evidence and judges none of it: the verdict stands before any of this is read, and a file that cannot be read is
said to be so. Every amount is bounded; what was left out is named.
"""

from __future__ import annotations

from verifier.surroundings.gather import gather
from verifier.surroundings.model import Surroundings

__all__ = ["Surroundings", "gather"]
