"""Kafka's znodes: the JSON inside them, to and from values. Pure.

Owns the layouts of Kafka's ZkData, the producer-id block's too. Does not own where a node stands (``paths``), nor who
writes it and when: that is the control plane. Unknown JSON keys are ignored; a node that cannot be understood raises
``MalformedZnode``, never a bare KeyError.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from cluster.metadata.paths import CLUSTER_ID, CONTROLLER, CONTROLLER_EPOCH, PRODUCER_ID_BLOCK, broker_path, topic_path

#: What ``/feature`` says about a cluster whose features are versioned and that has finalized none (KIP-584).
NO_FEATURES = b'{"features":{},"version":2,"status":1}'

#: What /controller_epoch holds before the first controller.
INITIAL_CONTROLLER_EPOCH = 0

_ENDPOINT = re.compile(r"(?P<listener>[^:/]+)://(?P<host>\[[^\]]*\]|[^:]*):(?P<port>-?\d+)")
_Value = TypeVar("_Value")


class MalformedZnode(Exception):
    """A node's data is not what Kafka writes there. ``path`` and the reason are in the message."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one listener of a broker is reached: the advertised address, not the bound one."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """``/brokers/ids/<id>``, ephemeral. The broker epoch is the node's czxid, not part of its data."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    security_protocols: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None
    timestamp_ms: int = 0

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)

    def encode(self) -> bytes:
        plaintext = self.endpoint("PLAINTEXT")
        document: dict[str, Any] = {
            "features": {},
            "listener_security_protocol_map": dict(self.security_protocols),
            "endpoints": [str(endpoint) for endpoint in self.endpoints],
            "jmx_port": -1,
            "port": plaintext.port if plaintext else -1,
            "host": plaintext.host if plaintext else None,
            "version": 5,
            "timestamp": str(self.timestamp_ms),
        }
        if self.rack is not None:
            document["rack"] = self.rack
        return _dump(document)

    @staticmethod
    def decode(broker_id: int, data: bytes) -> BrokerRegistration:
        def read(document: dict[str, Any]) -> BrokerRegistration:
            return BrokerRegistration(
                broker_id=broker_id,
                endpoints=tuple(_endpoint(str(text)) for text in document["endpoints"]),
                security_protocols={
                    str(k): str(v) for k, v in document.get("listener_security_protocol_map", {}).items()
                },
                rack=document.get("rack"),
                timestamp_ms=int(document.get("timestamp", 0)),
            )

        return _load(broker_path(broker_id), data, read)


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    """``/controller``, ephemeral."""
    return _dump({"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1})


def decode_controller(data: bytes) -> int:
    """The controller's broker id."""
    return _load(CONTROLLER, data, lambda document: int(document["brokerid"]))


def encode_controller_epoch(epoch: int) -> bytes:
    """``/controller_epoch``: plain text, not JSON."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    try:
        return int(data)
    except ValueError as error:
        raise MalformedZnode(f"{CONTROLLER_EPOCH}: {data!r} is not a number") from error


@dataclass(frozen=True, slots=True)
class TopicRegistration:
    """``/brokers/topics/<t>``: the assignment. ``topic_id`` is None in nodes written before topic ids."""

    topic_id: UUID | None
    partitions: Mapping[int, tuple[int, ...]]
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def encode(self) -> bytes:
        document: dict[str, Any] = {"version": 3}
        if self.topic_id is not None:
            document["topic_id"] = encode_topic_id(self.topic_id)
        for key, replicas in (
            ("partitions", self.partitions),
            ("adding_replicas", self.adding),
            ("removing_replicas", self.removing),
        ):
            document[key] = {str(partition): list(replicas[partition]) for partition in sorted(replicas)}
        return _dump(document)

    @staticmethod
    def decode(topic: str, data: bytes) -> TopicRegistration:
        def replicas(document: dict[str, Any], key: str) -> dict[int, tuple[int, ...]]:
            return {int(p): tuple(int(r) for r in ids) for p, ids in document.get(key, {}).items()}

        def read(document: dict[str, Any]) -> TopicRegistration:
            text = document.get("topic_id")
            return TopicRegistration(
                topic_id=None if text is None else decode_topic_id(str(text)),
                partitions=replicas(document, "partitions"),
                adding=replicas(document, "adding_replicas"),
                removing=replicas(document, "removing_replicas"),
            )

        return _load(topic_path(topic), data, read)


@dataclass(frozen=True, slots=True)
class StateNode:
    """``.../partitions/<p>/state``. The partition epoch is the node's version, not part of its data."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    recovering: bool = False

    def encode(self) -> bytes:
        document: dict[str, Any] = {
            "controller_epoch": self.controller_epoch,
            "leader": self.leader,
            "version": 1,
            "leader_epoch": self.leader_epoch,
            "isr": list(self.isr),
        }
        if self.recovering:
            document["leader_recovery_state"] = 1
        return _dump(document)

    @staticmethod
    def decode(path: str, data: bytes) -> StateNode:
        def read(document: dict[str, Any]) -> StateNode:
            return StateNode(
                leader=int(document["leader"]),
                leader_epoch=int(document["leader_epoch"]),
                isr=tuple(int(replica) for replica in document["isr"]),
                controller_epoch=int(document["controller_epoch"]),
                recovering=int(document.get("leader_recovery_state", 0)) == 1,
            )

        return _load(path, data, read)


@dataclass(frozen=True, slots=True)
class ProducerIdBlockNode:
    """``/latest_producer_id_block``: the newest block handed out, and to whom. Both ends are inclusive."""

    broker_id: int
    first_id: int
    last_id: int

    def encode(self) -> bytes:
        return _dump(
            {
                "version": 1,
                "broker": self.broker_id,
                "block_start": str(self.first_id),
                "block_end": str(self.last_id),
            }
        )

    @staticmethod
    def decode(data: bytes) -> ProducerIdBlockNode:
        def read(document: dict[str, Any]) -> ProducerIdBlockNode:
            return ProducerIdBlockNode(
                broker_id=int(document["broker"]),
                first_id=int(document["block_start"]),
                last_id=int(document["block_end"]),
            )

        return _load(PRODUCER_ID_BLOCK, data, read)


def encode_config(entries: Mapping[str, str]) -> bytes:
    """``/config/topics/<t>`` and its siblings."""
    return _dump({"version": 1, "config": {key: entries[key] for key in sorted(entries)}})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    return _load(path, data, lambda document: {str(k): str(v) for k, v in document.get("config", {}).items()})


def encode_config_change(kind: str, name: str) -> bytes:
    """``/config/changes/config_change_<n>``."""
    return _dump({"version": 2, "entity_path": f"{kind}/{name}"})


def decode_config_change(path: str, data: bytes) -> tuple[str, str]:
    """``/config/changes/config_change_<n>`` -> (entity type, entity name), such as ``("topics", "x")``."""

    def read(document: dict[str, Any]) -> tuple[str, str]:
        kind, _, name = str(document["entity_path"]).partition("/")
        return kind, name

    return _load(path, data, read)


def encode_cluster_id(cluster_id: str) -> bytes:
    return _dump({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    return _load(CLUSTER_ID, data, lambda document: str(document["id"]))


def encode_topic_id(topic_id: UUID) -> str:
    """Kafka's text of a uuid: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def decode_topic_id(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def _endpoint(text: str) -> Endpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise ValueError(f"not an endpoint: {text!r}")
    return Endpoint(match["listener"], match["host"].strip("[]"), int(match["port"]))


def _dump(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _load(path: str, data: bytes, read: Callable[[dict[str, Any]], _Value]) -> _Value:
    try:
        document = json.loads(data)
        if not isinstance(document, dict):
            raise TypeError("not an object")
        return read(document)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, binascii.Error) as error:
        raise MalformedZnode(f"{path}: {error!r} in {data[:200]!r}") from error
