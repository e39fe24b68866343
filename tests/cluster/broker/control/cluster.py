"""Brokers that have a control plane and nothing else: over one memory store and one memory network, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from cluster.broker.control.control_plane import ControlPlane
from cluster.broker.endpoints import Endpoint, PeerAddresses
from cluster.broker.metadata_cache import MetadataCache
from cluster.broker.pauses import Shares
from cluster.config.broker import validate
from cluster.controller.rules import ControlRules
from cluster.isr import UNKNOWN_BROKER_EPOCH, IsrAnswer, IsrProposal, PartitionId
from cluster.metadata.memory import MemoryStore, MemoryTree
from cluster.metadata.paths import state_path
from cluster.metadata.store import NoNodeError
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import (
    decode_request,
    encode_response,
    parse_request_header,
    request_class,
    response_class,
)
from cluster.seams.memory_transport import MemoryNetwork
from cluster.seams.randomness import derive
from cluster.seams.transport import Connection
from tests.support.virtual_time import LoopClock

SESSION_MS = 2000
PROPERTIES = {
    "listeners": "PEERS://127.0.0.1:0",
    "listener.security.protocol.map": "PEERS:PLAINTEXT",
    "inter.broker.listener.name": "PEERS",
    "zookeeper.connect": "memory",
    "zookeeper.session.timeout.ms": SESSION_MS,
    "controller.socket.timeout.ms": 1000,
    "controlled.shutdown.retry.backoff.ms": 500,
}


#: One partition's ISR change, as a leader asks for it.
IsrChange = tuple[PartitionId, IsrProposal]


def isr_change(
    topic_id: UUID, partition: int, state: Mapping[str, Any], isr: Iterable[int], broker_epochs: Mapping[int, int]
) -> IsrChange:
    """``state`` is what the state node holds, with its version."""
    members = tuple((member, broker_epochs.get(member, UNKNOWN_BROKER_EPOCH)) for member in isr)
    return (topic_id, partition), IsrProposal(state["leader_epoch"], state["version"], members)


async def ask(plane: ControlPlane, *changes: IsrChange) -> list[IsrAnswer]:
    """The controller's answers, in the order of ``changes``."""
    answers = await plane.controller.alter_partition(dict(changes))
    return [answers[partition_id] for partition_id, _ in changes]


def serve(
    plane: ControlPlane,
    request: Any,
    version: int,
    is_gone: Callable[[], bool] = lambda: False,
    let_go: Callable[[], None] = lambda: None,
) -> Coroutine[Any, Any, Any]:
    """The answer to a decoded request that only a controller serves, by the handler of its API."""
    handler = import_module(f"cluster.broker.handlers.{ApiKey(request.API_KEY).name.lower()}")
    services = SimpleNamespace(control=plane, shares=Shares(LoopClock().monotonic_ns))
    exchange = SimpleNamespace(api_version=version, let_go=let_go, connection=SimpleNamespace(is_gone=is_gone))
    answer: Coroutine[Any, Any, Any] = handler.handle(services, request, exchange)
    return answer


class _Server:
    """One accepted connection: requests answered one after the other."""

    def __init__(self, broker: Broker, connection: Connection) -> None:
        self._broker = broker
        self._connection = connection
        self._requests: asyncio.Queue[bytes] = asyncio.Queue()
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def on_frame(self, frame: memoryview) -> None:
        self._requests.put_nowait(bytes(frame))

    def on_eof(self) -> None:
        self._connection.close()

    def on_closed(self, reason: str) -> None:
        self._task.cancel()

    async def _serve(self) -> None:
        while True:
            frame = memoryview(await self._requests.get())
            header = parse_request_header(frame)
            request = decode_request(request_class(header.api_key), header.api_version, frame[header.body_offset :])
            response = await self._broker.handle(request, header.api_version)
            self._connection.send_frame(
                (encode_response(header.api_key, header.api_version, header.correlation_id, response),)
            )


class Broker:
    """One broker in one life."""

    def __init__(self, cluster: Cluster, broker_id: int, life: int, properties: dict[str, Any], rules: ControlRules):
        self.cluster = cluster
        self.broker_id = broker_id
        self.node = f"node-{broker_id}"
        self.store: Any = cluster.store_for(broker_id)
        self.cache = MetadataCache()
        self.received: list[Any] = []
        self.roles: dict[tuple[str, int], Any] = {}
        self.stopped: set[tuple[str, int]] = set()
        self.journal: list[tuple[str, dict[str, Any]]] = []
        self.configs_at_roles: dict[str, dict[str, str]] = {}
        self._life = life
        self._listener: Any = None
        self._properties = validate({"broker.id": broker_id, **PROPERTIES, **properties})
        self._rules = rules
        self.plane: ControlPlane

    def __repr__(self) -> str:
        return f"Broker({self.broker_id}, life {self._life})"

    async def start(self) -> None:
        transport = self.cluster.transport_for(self.node)
        self._listener = await transport.listen("127.0.0.1", 0, lambda connection: _Server(self, connection))
        self.plane = ControlPlane(
            broker_id=self.broker_id,
            properties=self._properties,
            store=self.store,
            transport=transport,
            clock=LoopClock(),
            # As a broker that is started again with its seed: it draws what it drew before.
            random=derive(1, "control", self.broker_id),
            endpoints=[Endpoint("PEERS", "127.0.0.1", self._listener.port)],
            peers=PeerAddresses({}, "PEERS"),
            cache=self.cache,
            journal=lambda event, fields: self.journal.append((event, fields)),
            rules=self._rules,
            deliver=lambda request: self.handle(request, 0),
        )
        await self.plane.open()
        await self.plane.start()

    async def crash(self) -> None:
        """kill -9: the session lives on until its timeout, nothing is said to anybody."""
        self.store.cut()
        await self._listener.close()
        await self.plane.stop(controlled=False)

    async def leave(self) -> None:
        await self.plane.stop(controlled=True)
        await self._listener.close()

    async def handle(self, request: Any, version: int) -> Any:
        key = ApiKey(request.API_KEY)
        if key in (ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.STOP_REPLICA):
            return await self._obey(key, request)
        return await serve(self.plane, request, version)

    async def _obey(self, key: ApiKey, request: Any) -> Any:
        response = response_class(key)
        error = self.plane.check_control_request(request.controller_epoch, request.broker_epoch)
        if error is not ErrorCode.NONE:
            return response(error_code=error)
        self.received.append(request)
        if key is ApiKey.UPDATE_METADATA:
            self.cache.update(request)
        for topic in request.topic_states:
            for state in topic.partition_states:
                name = (topic.topic_name, state.partition_index)
                if key is ApiKey.LEADER_AND_ISR:
                    await self.plane.load_topic_configs([topic.topic_name])
                    self.configs_at_roles[topic.topic_name] = dict(self.cache.topic_config(topic.topic_name))
                    known = self.roles.get(name)
                    if known is None or known.leader_epoch <= state.leader_epoch:
                        self.roles[name] = state
                elif key is ApiKey.STOP_REPLICA:
                    self.stopped.add(name)
                    if state.delete_partition:
                        self.roles.pop(name, None)
        return response(error_code=ErrorCode.NONE)


class Cluster:
    """All brokers of a test."""

    def __init__(self, latency_s: float = 0.001) -> None:
        self.tree = MemoryTree()
        self.network = MemoryNetwork()
        self.latency_s = latency_s
        self.brokers: dict[int, Broker] = {}
        self._lives = 0

    def store_for(self, broker_id: int) -> Any:
        return MemoryStore(self.tree, session_timeout_ms=SESSION_MS, latency_s=self.latency_s)

    def transport_for(self, node: str) -> Any:
        return self.network.transport(node)

    async def start(self, *broker_ids: int, rules: ControlRules | None = None, **properties: Any) -> list[Broker]:
        """Start brokers, one after the other. Properties with underscores for dots."""
        keys = {key.replace("_", "."): value for key, value in properties.items()}
        started = []
        for broker_id in broker_ids:
            self._lives += 1
            broker = Broker(self, broker_id, self._lives, keys, rules or ControlRules())
            self.brokers[broker_id] = broker
            await broker.start()
            started.append(broker)
        return started

    async def stop(self) -> None:
        for broker in self.brokers.values():
            await broker.plane.stop(controlled=False)

    @property
    def controller(self) -> Broker:
        [active] = [broker for broker in self.brokers.values() if broker.plane.is_controller]
        return active

    async def until(self, check: Callable[[], Any], within_s: float = 30.0) -> Any:
        """The first true result of ``check``, which is asked every 10 ms of virtual time."""
        async with asyncio.timeout(within_s):
            while True:
                result = check()
                if result:
                    return result
                await asyncio.sleep(0.01)

    async def create_topic(self, name: str = "t", partitions: int = 1, factor: int = 3, **more: Any) -> Any:
        request = create_topics_request([(name, partitions, factor)], **more)
        response = await serve(self.controller.plane, request, 7)
        [result] = response.topics
        assert result.error_code == ErrorCode.NONE, result.error_message
        return result

    def state(self, topic: str = "t", partition: int = 0) -> dict[str, Any] | None:
        """The state znode, with its version as ``version``."""
        try:
            data, stat = self.tree.get(state_path(topic, partition))
        except NoNodeError:
            return None
        return {**json.loads(data), "version": stat.version}

    def leader(self, topic: str = "t", partition: int = 0) -> int:
        state = self.state(topic, partition)
        return -1 if state is None else int(state["leader"])


def create_topics_request(
    topics: list[tuple[str, int, int]],
    *,
    assignments: dict[int, list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
    timeout_ms: int = 5000,
    validate_only: bool = False,
) -> Any:
    request = request_class(ApiKey.CREATE_TOPICS)
    topic = request.CreatableTopic
    return request(
        version=7,
        topics=[
            topic(
                name=name,
                num_partitions=partitions,
                replication_factor=factor,
                assignments=[
                    topic.CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
                    for index, ids in (assignments or {}).items()
                ],
                configs=[topic.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
            )
            for name, partitions, factor in topics
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
