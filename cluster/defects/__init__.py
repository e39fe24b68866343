"""Defects: known bugs that can be planted, one file each, modeled on real ones (docs/reference/anomalies-and-bugs.md
"Bugs of others"), to show that the verifier finds them.

Owns the catalogue, the parsing of ``NAME[:probability]`` and the record of each firing. A defect wraps the broker's
``Rules`` or its storage at start-up, and the correct code does not know about it. Of the brokers, only their main
imports this room; of the command line, what checks a ``--defect`` and what lists the names.
"""

from __future__ import annotations

from cluster.defects.catalogue import CATALOGUE, DefectError, DefectSpec, parse, with_defects, with_storage_defects
from cluster.defects.model import Defect

__all__ = ["CATALOGUE", "Defect", "DefectError", "DefectSpec", "parse", "with_defects", "with_storage_defects"]
