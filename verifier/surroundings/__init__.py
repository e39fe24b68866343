"""Reads the evidence around each anomaly for the report: stored bytes, what clients were told, log lines and leaders.

Owns which places are shown and what is read around them. Judges nothing: the verdict is final before any of this is
read. If a file cannot be read, a note says so. All amounts are bounded, and the report says what was left out.
"""

from __future__ import annotations

from verifier.surroundings.gather import gather
from verifier.surroundings.model import Surroundings

__all__ = ["Surroundings", "gather"]
