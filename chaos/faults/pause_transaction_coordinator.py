"""``pause-transaction-coordinator``: SIGSTOP the coordinator of a transactional id at a step of a transaction."""

from __future__ import annotations

from chaos.faults.accepted import one_of
from chaos.faults.pause_coordinator import PauseCoordinator
from chaos.faults.steps import STEPS


class PauseTransactionCoordinator(PauseCoordinator):
    """When it wakes up, it finds a request or markers for which its successor is responsible by then."""

    name = "pause-transaction-coordinator"
    summary = "SIGSTOP the coordinator of a transactional id at a step of its transaction; SIGCONT it"
    coordinates = "transaction"
    needs_coordinator = "transaction"
    accepts = (one_of("step", *STEPS["transaction"]),)
    targets = ("partition", "transactional_id")
