"""``kill-transaction-coordinator``: SIGKILL the coordinator of a transactional id at a step of a transaction."""

from __future__ import annotations

from chaos.faults.accepted import one_of
from chaos.faults.kill_coordinator import KillCoordinator
from chaos.faults.steps import STEPS


class KillTransactionCoordinator(KillCoordinator):
    """Before it receives EndTxn, after that, while its response or its markers are in flight, or earlier."""

    name = "kill-transaction-coordinator"
    summary = "SIGKILL the coordinator of a transactional id at a step of its transaction; restart it"
    coordinates = "transaction"
    needs_coordinator = "transaction"
    accepts = (one_of("step", *STEPS["transaction"]),)
    targets = ("partition", "transactional_id")
