"""FindCoordinator of transactional ids over the wire: who leads the id's partition, and how that comes to be."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from cluster.broker.internal_topics import TRANSACTIONS_TOPIC
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.transactions.scenes import TxnProducer, coordinator_of, with_transactions
from tests.simulation.client import Client
from tests.simulation.nodes import HOST, MemoryCluster
from tests.support.virtual_time import run

#: Enough that each of three brokers leads some.
IDS = [f"id-{number}" for number in range(12)]
NOWHERE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)


async def find(cluster: MemoryCluster, broker_id: int, transactional_id: str, version: int, listener: str) -> Any:
    """(error, broker id, host, port), asked of one broker."""
    client = Client(await cluster.connect(broker_id, listener=listener))
    fields: dict[str, Any] = {"coordinator_keys": [transactional_id]} if version >= 4 else {"key": transactional_id}
    answer = await client.send(ApiKey.FIND_COORDINATOR, version, key_type=1, **fields)
    (found,) = answer.coordinators if version >= 4 else [answer]
    return found.error_code, found.node_id, found.host, found.port


@pytest.mark.parametrize("version", range(1, 5))
def test_every_broker_names_the_leader(version: int) -> None:
    """The broker that answers for the id, at the address of the listener that was asked on."""

    async def check(cluster: MemoryCluster, _producer: TxnProducer) -> None:
        coordinators = set()
        for transactional_id in IDS:
            coordinator = coordinator_of(cluster, transactional_id)
            coordinators.add(coordinator)
            for listener in ("CLIENTS", "PEERS"):
                expected = (ErrorCode.NONE, coordinator, HOST, cluster.nodes[coordinator].ports[listener])
                for broker_id in cluster.broker_ids:
                    assert await find(cluster, broker_id, transactional_id, version, listener) == expected
        assert coordinators == set(cluster.broker_ids)

    with_transactions(check, brokers=3)


def test_there_are_too_few_brokers(caplog: pytest.LogCaptureFixture) -> None:
    """Clients ask again, for a broker may come; the log has the reason. Groups do not suffer."""

    async def main() -> None:
        async with MemoryCluster(1, {"offsets.topic.replication.factor": "1"}) as cluster:
            assert await find(cluster, 1, "id", 4, "CLIENTS") == NOWHERE
            await cluster.until(lambda: any("cannot be created" in each.getMessage() for each in caplog.records))
            assert cluster.nodes[1].metadata.topic(TRANSACTIONS_TOPIC) is None

    with caplog.at_level(logging.WARNING):
        run(main())
    assert f"topic {TRANSACTIONS_TOPIC} cannot be created" in caplog.text
