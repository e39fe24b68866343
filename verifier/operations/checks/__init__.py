"""The checks of operation histories, each a pure function of operations and versions; their definitions are in
``verifier.operations.anomalies``. Owns which there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from verifier.operations.checks import log, sequences, single_values
from verifier.operations.findings import Findings
from verifier.operations.pairing import Operations
from verifier.operations.versions import Versions

#: Each gives the findings of one or of several checks; ``verifier.operations.cycles`` has those that need a graph.
CHECKS: Mapping[str, Callable[[Operations, Versions], list[Findings]]] = {
    "log": log.find,
    "values": single_values.find,
    "polls": sequences.polls,
    "polls within an operation": sequences.internal_polls,
    "sends": sequences.sends,
    "sends within an operation": sequences.internal_sends,
}
