"""A data directory of somebody else: the broker refuses to start before anybody, and any log, has heard of it."""

from __future__ import annotations

import pytest

from cluster.log.errors import LogError
from cluster.metadata.paths import broker_path
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run


@pytest.mark.parametrize(
    ("owner", "refusal"),
    [
        ("broker.id=1\ncluster.id=another", "belongs to cluster another"),
        ("broker.id=7\ncluster.id={cluster}", "belongs to broker 7"),
    ],
    ids=["of another cluster", "of another broker"],
)
def test_a_directory_of_somebody_else_is_not_touched_and_not_registered(owner: str, refusal: str) -> None:
    """Kafka's ``KafkaServer.startup`` checks ``meta.properties`` before it loads logs, and long before it registers."""

    async def main() -> None:
        async with MemoryCluster(2) as cluster:
            await cluster.create_topic("t", replicas=2)
            cluster_id = cluster.nodes[2].metadata.cluster_id
            await cluster.crash(1)
            await cluster.until(lambda: cluster.tree.exists(broker_path(1)) is None)
            storage = cluster.storages[1]
            text = "version=0\n" + owner.format(cluster=cluster_id) + "\n"
            storage.write_atomic("/data/meta.properties", text.encode())
            storage.open("/data/t-0/00000000000000000000.log").append(b"torn")
            before = {name: storage.read(f"/data/t-0/{name}") for name in storage.listdir("/data/t-0")}
            with pytest.raises(LogError, match=refusal):
                await cluster.start(1)
            assert cluster.tree.exists(broker_path(1)) is None
            assert {name: storage.read(f"/data/t-0/{name}") for name in storage.listdir("/data/t-0")} == before
            await cluster.bury(cluster.kill(1))

    run(main())
