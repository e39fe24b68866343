"""Defects: known bugs that can be planted, one file each, modeled on real ones (docs/reference/anomalies-and-bugs.md
"Bugs of others"), to show that the verifier finds them.

Owns the catalogue, the parsing of ``NAME[:probability]`` and the record of each firing. A defect wraps the broker's
``Rules`` at start-up; the correct code does not know about it, and only the broker's main imports this room.
"""

from __future__ import annotations

from cluster.defects.catalogue import CATALOGUE, Defect, DefectError, DefectSpec, parse, with_defects

__all__ = ["CATALOGUE", "Defect", "DefectError", "DefectSpec", "parse", "with_defects"]
