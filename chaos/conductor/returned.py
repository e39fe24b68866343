"""Starts brokers that do not run after the last fault, and records each as a problem of the run.

Leaves a broker alone if it is not known whether it runs (docs/target.md "Processes"): whether its replicas are in sync
is checked next, by the conductor.
"""

from __future__ import annotations

from collections.abc import Callable

from chaos.conductor.run_cluster import RunCluster
from chaos.faults.breakable import ProcessLife


async def bring_back(cluster: RunCluster, problem: Callable[[str], None]) -> None:
    """Call ``problem`` with a line for each broker that exited on its own, and start it. Raises StartFailure."""
    for broker_id in cluster.broker_ids:
        if await cluster.life(broker_id) is ProcessLife.ENDED:
            status = cluster.process(broker_id).wait(0)
            problem(f"broker {broker_id} exited unexpectedly (exit code {status})")
            await cluster.restart(broker_id)
