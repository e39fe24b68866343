"""MemoryCluster: brokers in one process over a memory network, memory disks and one memory ZooKeeper.

Owns their lives (start, crash, pause, restart) and a few plain requests of a client. Run it in virtual time
(``tests.support.virtual_time.run``): seconds of a cluster take milliseconds, and the same steps give the same
outcome. Each life of a broker runs in a context of its own (``virtual_time.OWNER``), so that it can be made to stand
still and be asked what it has left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from cluster.broker.checkpoints import in_place
from cluster.broker.node import Node, Seams
from cluster.broker.rules import Rules
from cluster.client.connection import BrokerConnection
from cluster.config.broker import validate
from cluster.config.profiles import CHAOS
from cluster.metadata.memory import MemoryStore, MemoryTree
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.seams.clock import Clock
from cluster.seams.memory_storage import MemoryStorage, Survivors
from cluster.seams.memory_transport import MemoryNetwork, MemoryTransport
from cluster.seams.randomness import derive
from tests.support.virtual_time import OWNER, LoopClock, VirtualTimeLoop

HOST = "127.0.0.1"
CLIENT = "client"
SESSION_MS = 2000
LISTENERS = ("CLIENTS", "PEERS")


#: (broker id, which of its lives)
Life = tuple[int, int]


@dataclass(frozen=True)
class Process:
    """What the world outside knows of one life of a broker."""

    life: Life
    node: Node
    store: MemoryStore
    transport: MemoryTransport


class MemoryCluster:
    """``properties`` are added to every broker's; ``delay`` is the network's, in milliseconds."""

    def __init__(
        self,
        brokers: int = 3,
        properties: Mapping[str, str] | None = None,
        rules: Rules | None = None,
        delay: Callable[[str, str, int], float] = lambda source, destination, size: 0.2,
        seed: int = 1,
    ) -> None:
        self.broker_ids = tuple(range(1, brokers + 1))
        self.tree = MemoryTree()
        self.network = MemoryNetwork(delay)
        self.storages = {broker_id: MemoryStorage() for broker_id in self.broker_ids}
        self.nodes: dict[int, Node] = {}
        self.stores: dict[int, MemoryStore] = {}
        self.processes: dict[int, Process] = {}
        self.paused: set[int] = set()
        self._starting: dict[Life, asyncio.Task[Node]] = {}
        self.failures: list[tuple[int, Exception]] = []
        self._properties = dict(properties or {})
        self._rules = rules or Rules()
        self._seed = seed
        self._lives = dict.fromkeys(self.broker_ids, 0)
        self._connections: list[BrokerConnection] = []

    async def __aenter__(self) -> MemoryCluster:
        for broker_id in self.broker_ids:
            await self.start(broker_id)
        await self.until(
            lambda: all(len(node.metadata.alive_brokers()) == len(self.nodes) for node in self.nodes.values())
        )
        return self

    async def __aexit__(self, *_error: object) -> None:
        for connection in self._connections:
            connection.close()
        for broker_id in list(self.nodes):
            await self.crash(broker_id)
        await asyncio.sleep(10 * SESSION_MS / 1000)

    async def start(self, broker_id: int) -> Node:
        """A new life of a broker on its own disk."""
        self._lives[broker_id] += 1
        life = (broker_id, self._lives[broker_id])
        context = copy_context()
        context.run(OWNER.set, life)
        starting = asyncio.get_running_loop().create_task(self._start(life), context=context)
        self._starting[life] = starting
        try:
            return await starting
        except asyncio.CancelledError:
            if starting.cancelled() and life[0] not in self.processes:
                raise ConnectionAbortedError(f"life {life} was killed while it started") from None
            raise
        finally:
            del self._starting[life]

    async def _start(self, life: Life) -> Node:
        broker_id = life[0]
        store = MemoryStore(self.tree, session_timeout_ms=SESSION_MS, latency_s=0.001)
        transport = self.network.transport(f"b{broker_id}")
        seams = Seams(
            clock=self.clock_of(broker_id),
            random=derive(self._seed, "broker", broker_id),
            transport=transport,
            store=store,
            storage=self.storages[broker_id],
            blocking=in_place,
        )
        self.storages[broker_id].makedirs("/node")
        config = validate(self._config(broker_id))
        node = Node(
            config, self.rules_of(broker_id), seams, "/node", lambda error: self.broker_failed(broker_id, error)
        )
        await node.bind()
        self.nodes[broker_id], self.stores[broker_id] = node, store
        self.processes[broker_id] = Process(life, node, store, transport)
        await node.start()
        return node

    def broker_failed(self, broker_id: int, error: Exception) -> None:
        """A broker says that it cannot go on."""
        self.failures.append((broker_id, error))

    def _config(self, broker_id: int) -> dict[str, str]:
        listeners = ",".join(f"{name}://{HOST}:{40000 + 100 * broker_id + n}" for n, name in enumerate(LISTENERS))
        return {
            **CHAOS.broker,
            "broker.id": str(broker_id),
            "listeners": listeners,
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in LISTENERS),
            "inter.broker.listener.name": "PEERS",
            "zookeeper.connect": "memory",
            "log.dirs": "/data",
            "min.insync.replicas": "2" if len(self.broker_ids) > 1 else "1",
            **self._properties,
        }

    def clock_of(self, broker_id: int) -> Clock:
        """The clock that a broker is started with."""
        return LoopClock()

    def rules_of(self, broker_id: int) -> Rules:
        """The rules that a broker is started with."""
        return self._rules

    def kill(self, broker_id: int, *, power_loss: bool = False, survivors: Survivors | None = None) -> Process:
        """kill -9, at once: nothing of this life has an effect any more. ZooKeeper notices when the session ends.

        ``power_loss``: what was not synced is lost too, but for what ``survivors`` spares. The life is to be cleaned
        up by ``bury``.
        """
        process = self.processes.pop(broker_id)
        del self.nodes[broker_id]
        process.transport.kill()
        process.store.cut()
        self.storages[broker_id] = self.storages[broker_id].survivor()
        if power_loss:
            self.storages[broker_id].power_loss(survivors)
        self.resume(broker_id)
        starting = self._starting.get(process.life)
        if starting is not None:
            starting.cancel()
        return process

    async def bury(self, process: Process) -> None:
        """Let a killed life end its tasks and timers; none of it reaches anybody."""
        starting = self._starting.get(process.life)
        if starting is not None:
            await asyncio.wait([starting])
        context = copy_context()
        context.run(OWNER.set, process.life)
        loop = asyncio.get_running_loop()
        await loop.create_task(process.node.stop(controlled=False), context=context)

    async def crash(self, broker_id: int, *, power_loss: bool = False) -> None:
        """``kill``, and wait until nothing is left of it."""
        await self.bury(self.kill(broker_id, power_loss=power_loss))

    async def stop(self, broker_id: int) -> None:
        """A controlled shutdown, or the end of a start that is under way (``cluster.broker.main``)."""
        process = self.processes.pop(broker_id)
        del self.nodes[broker_id]
        starting = self._starting.get(process.life)
        if starting is not None:
            starting.cancel()
            await asyncio.wait([starting])
        context = copy_context()
        context.run(OWNER.set, process.life)
        loop = asyncio.get_running_loop()
        await loop.create_task(process.node.stop(controlled=starting is None), context=context)

    def pause(self, broker_id: int) -> None:
        """SIGSTOP: the loop of a broker stands still; its sockets and timers wait for it, ZooKeeper does not."""
        process = self.processes[broker_id]
        self.paused.add(broker_id)
        process.store.stall()
        self.loop.pause(process.life)

    def resume(self, broker_id: int) -> None:
        """SIGCONT. Nothing happens to a broker that runs."""
        if broker_id in self.paused:
            self.paused.discard(broker_id)
            life = (broker_id, self._lives[broker_id])
            self.loop.resume(life)
            process = self.processes.get(broker_id)
            if process is not None:
                process.store.unstall()

    def left_of(self, process: Process) -> list[str]:
        """Tasks and timers that a life has left behind."""
        return self.loop.left_of(process.life)

    @property
    def loop(self) -> VirtualTimeLoop:
        """The loop of everything, which can let a part of it stand still."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop), "pausing needs virtual time"
        return loop

    # A client

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers``: the first listener of each broker, whether it runs or not."""
        return ",".join(f"{HOST}:{40000 + 100 * broker_id}" for broker_id in self.broker_ids)

    async def connect(
        self, broker_id: int, listener: str = "CLIENTS", node: str = CLIENT, timeout_ms: int = 10_000
    ) -> BrokerConnection:
        port = self.nodes[broker_id].ports[listener]
        connection = await BrokerConnection.open(self.network.transport(node), HOST, port, CLIENT, timeout_ms)
        self._connections.append(connection)
        return connection

    async def create_topic(self, name: str, partitions: int = 1, replicas: int | None = None, **config: str) -> None:
        request = request_class(ApiKey.CREATE_TOPICS)
        topic = request.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas or len(self.broker_ids),
            assignments=[],
            configs=[
                request.CreatableTopic.CreatableTopicConfig(name=key, value=value) for key, value in config.items()
            ],
        )
        await self.until(lambda: any(node.control.is_controller for node in self.nodes.values()))
        controller = next(broker for broker, node in self.nodes.items() if node.control.is_controller)
        connection = await self.connect(controller)
        response = await connection.send(request(topics=[topic], timeout_ms=5000, validate_only=False), 5)
        assert [entry.error_code for entry in response.topics] == [ErrorCode.NONE], response
        await self.until(
            lambda: all(
                all(node.metadata.partition(name, number) for number in range(partitions))
                for node in self.nodes.values()
            )
        )

    def leader(self, topic: str, partition: int = 0) -> int:
        """Who leads, in the eyes of the broker with the newest leader epoch that says it does; -1 if nobody."""
        leading = [
            (found.leader_epoch, broker_id)
            for broker_id, node in self.nodes.items()
            if node.is_started
            and (found := node.replicas.partitions.get((topic, partition))) is not None
            and found.leader is not None
        ]
        return max(leading)[1] if leading else -1

    def isr(self, topic: str, partition: int = 0) -> set[int]:
        leader = self.leader(topic, partition)
        if leader < 0:
            return set()
        state = self.nodes[leader].replicas.partitions[topic, partition].leader
        return set() if state is None else set(state.isr.committed)

    def log_bytes(self, broker_id: int, topic: str, partition: int = 0) -> bytes:
        storage, directory = self.storages[broker_id], f"/data/{topic}-{partition}"
        names = sorted(name for name in storage.listdir(directory) if name.endswith(".log"))
        return b"".join(storage.read(f"{directory}/{name}") for name in names)

    async def until(self, condition: Callable[[], Any], timeout_s: float = 30) -> None:
        """Wait, in the loop's time, until a condition holds."""
        async with asyncio.timeout(timeout_s):
            while not condition():  # noqa: ASYNC110 - the conditions are about many parts, none of which signals
                await asyncio.sleep(0.01)
