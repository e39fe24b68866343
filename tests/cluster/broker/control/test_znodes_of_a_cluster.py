"""What zkCli shows of a cluster: every path that Kafka 3.8 has, and the keys of its JSON in their types."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from cluster.broker.config_store import BROKERS, TOPICS, ConfigStore
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.control.cluster import Cluster, serve
from tests.cluster.broker.control.test_reassignments import catch_up, move
from tests.support.virtual_time import run

#: Nodes without data, or with none of their own.
PERSISTENT = {
    "/admin", "/admin/delete_topics", "/brokers", "/brokers/ids", "/brokers/seqid", "/brokers/topics", "/cluster",
    "/config", "/config/brokers", "/config/changes", "/config/clients", "/config/ips", "/config/topics",
    "/config/users", "/consumers", "/isr_change_notification", "/log_dir_event_notification",
}  # fmt: skip


def paths(cluster: Cluster, at: str = "") -> set[str]:
    found = {at} if at else set()
    for name in cluster.tree.children(at or "/"):
        found |= paths(cluster, f"{at}/{name}")
    return found


def shape(document: Any) -> Any:
    """A JSON document with the types of its values for them."""
    if isinstance(document, dict):
        return {key: shape(value) for key, value in document.items()}
    if isinstance(document, list):
        return [shape(document[0])] if document else []
    return None if document is None else type(document)


def document(cluster: Cluster, path: str) -> Any:
    return json.loads(cluster.tree.get(path)[0])


def owner(cluster: Cluster, path: str) -> int:
    stat = cluster.tree.exists(path)
    assert stat is not None
    return stat.ephemeral_owner


def test_an_empty_cluster_has_kafka_s_paths_and_no_others() -> None:
    """What brokers create at their start (Kafka's ZkData); two of them are ephemeral."""

    async def body() -> None:
        cluster = Cluster()
        await cluster.start(1, 2)
        assert paths(cluster) == PERSISTENT | {
            "/cluster/id", "/controller", "/controller_epoch", "/feature", "/latest_producer_id_block",
            "/brokers/ids/1", "/brokers/ids/2",
        }  # fmt: skip
        for path in sorted(paths(cluster)):
            is_ephemeral = path == "/controller" or path.startswith("/brokers/ids/")
            assert (owner(cluster, path) != 0) == is_ephemeral, path
        assert shape(document(cluster, "/controller")) == {
            "version": int,
            "brokerid": int,
            "timestamp": str,
            "kraftControllerEpoch": int,
        }
        assert document(cluster, "/controller")["version"] == 2
        assert cluster.tree.get("/controller_epoch")[0] == b"1"
        assert list(shape(document(cluster, "/brokers/ids/1")).items()) == [
            ("features", {}),
            ("listener_security_protocol_map", {"PEERS": str}),
            ("endpoints", [str]),
            ("jmx_port", int),
            ("port", int),
            ("host", None),
            ("version", int),
            ("timestamp", str),
        ]
        assert document(cluster, "/brokers/ids/1")["version"] == 5
        assert shape(document(cluster, "/cluster/id")) == {"version": str, "id": str}
        assert cluster.tree.get("/feature")[0] == b'{"features":{},"version":2,"status":1}'
        assert shape(document(cluster, "/latest_producer_id_block")) == {
            "version": int,
            "broker": int,
            "block_start": str,
            "block_end": str,
        }
        await cluster.stop()

    run(body())


def test_a_topic_s_nodes_through_its_life() -> None:
    """Made, configured, moved, asked to go while a replica is away, and gone without a trace."""

    async def body() -> None:
        cluster = Cluster()
        await cluster.start(1, 2, 3)
        await cluster.create_topic(
            "t", assignments={0: [2, 1]}, partitions=-1, factor=-1, configs={"retention.ms": "5"}
        )
        own = {"/brokers/topics/t", "/brokers/topics/t/partitions", "/brokers/topics/t/partitions/0"}
        own |= {"/brokers/topics/t/partitions/0/state", "/config/topics/t"}
        assert own <= paths(cluster)
        assert cluster.tree.get("/brokers/topics/t/partitions/0/state")[0] == (
            b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,1]}'
        )
        assert document(cluster, "/config/topics/t") == {"version": 1, "config": {"retention.ms": "5"}}
        topic = document(cluster, "/brokers/topics/t")
        assert len(topic.pop("topic_id")) == 22
        assert topic == {"version": 3, "partitions": {"0": [2, 1]}, "adding_replicas": {}, "removing_replicas": {}}

        await move(cluster, (0, [3, 1]))
        topic = document(cluster, "/brokers/topics/t")
        assert topic["partitions"] == {"0": [3, 1, 2]}
        assert (topic["adding_replicas"], topic["removing_replicas"]) == ({"0": [3]}, {"0": [2]})
        await catch_up(cluster, 2, 1, 3)
        await cluster.until(lambda: document(cluster, "/brokers/topics/t")["removing_replicas"] == {})
        assert "/admin/reassign_partitions" not in paths(cluster)

        store = ConfigStore(cluster.brokers[2].plane._session)
        await store.alter(TOPICS, "t", lambda _stored: {"retention.ms": "6"})
        await store.alter(BROKERS, "<default>", lambda _stored: {"message.max.bytes": "7"})
        news = [f"/config/changes/{name}" for name in cluster.tree.children("/config/changes")]
        assert news == ["/config/changes/config_change_0000000000", "/config/changes/config_change_0000000001"]
        assert [document(cluster, path) for path in news] == [
            {"version": 2, "entity_path": "topics/t"},
            {"version": 2, "entity_path": "brokers/<default>"},
        ]
        assert [owner(cluster, path) for path in news] == [0, 0]

        await cluster.brokers[3].crash()
        await cluster.until(lambda: len(cluster.controller.cache.alive_brokers()) == 2)
        request = request_class(ApiKey.DELETE_TOPICS)(topic_names=["t"], topics=[], timeout_ms=100)
        answer = await serve(cluster.controller.plane, request, 5)
        assert answer.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert cluster.tree.get("/admin/delete_topics/t")[0] == b""
        await cluster.start(3)
        await cluster.until(lambda: "/admin/delete_topics/t" not in paths(cluster))
        assert not {path for path in paths(cluster) if path.startswith(("/brokers/topics/", "/config/topics/"))}
        await asyncio.sleep(0.1)
        await cluster.stop()

    run(body())
