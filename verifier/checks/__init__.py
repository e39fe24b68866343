"""The checks, one file each: a name, a definition with a minimal example, a plan from the tables to anomalies.

Importing a check's own module loads pyspark; ``CHECKS`` here is their names and summaries alone.
"""

from __future__ import annotations

from verifier.anomalies import ANOMALIES

CHECKS = ANOMALIES
