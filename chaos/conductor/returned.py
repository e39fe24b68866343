"""After the last fault: whether every broker is up, and the start of one that is not. Owns what that means for a run.

A broker that is not known to run (docs/target.md "Processes") is neither reported nor started here: the cluster itself
says next whether its replicas are in sync.
"""

from __future__ import annotations

from collections.abc import Callable

from chaos.conductor.run_cluster import RunCluster
from chaos.faults.breakable import ProcessLife


async def bring_back(cluster: RunCluster, problem: Callable[[str], None]) -> None:
    """Report and start each broker that exited on its own. Raises StartFailure."""
    for broker_id in cluster.broker_ids:
        if await cluster.life(broker_id) is ProcessLife.ENDED:
            status = cluster.process(broker_id).wait(0)
            problem(f"broker {broker_id} exited unexpectedly (exit code {status})")
            await cluster.restart(broker_id)
