"""The checks of runs, one file each: a name, a definition with a minimal example, and a function that finds anomalies.

Owns the definitions and how the anomalies are found. Does not own the evidence: most checks query the tables of
``verifier.tables`` with Spark, the others take prepared values (``verifier.transactions``, ``verifier.groups``).
Importing the module of a check may load pyspark. ``CHECKS`` has only names and summaries, and loads nothing.
"""

from __future__ import annotations

from verifier.anomalies import ANOMALIES

CHECKS = ANOMALIES
