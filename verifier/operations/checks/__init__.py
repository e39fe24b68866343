"""The checks of operation histories. Each is a pure function of operations and versions.

Owns the list of checks. Does not own their definitions (``verifier.operations.anomalies``), or the checks that need a
graph (``verifier.operations.cycles``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifier.operations.checks import log, sequences, single_values
from verifier.operations.findings import Findings
from verifier.operations.pairing import Operations
from verifier.operations.versions import Versions

#: Functions by name. Each returns the findings of one or several checks.
CHECKS: Mapping[str, Callable[[Operations, Versions], list[Findings]]] = {
    "log": log.find,
    "values": single_values.find,
    "polls": sequences.polls,
    "polls within an operation": sequences.internal_polls,
    "sends": sequences.sends,
    "sends within an operation": sequences.internal_sends,
}
