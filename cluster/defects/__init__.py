"""Defects: switchable wrong logic, one file each, modeled on real bugs (docs/reference/anomalies-and-bugs.md "Bugs of
others"), to show that the verifier sees them.

Owns the catalogue, the parsing of ``NAME[:probability]`` and the record of each firing. A defect wraps the broker's
``Rules`` at start-up; the correct code knows nothing of it, and only the broker's main imports this room.
"""

from __future__ import annotations

from cluster.defects.catalogue import CATALOGUE, Defect, DefectError, DefectSpec, parse, with_defects

__all__ = ["CATALOGUE", "Defect", "DefectError", "DefectSpec", "parse", "with_defects"]
