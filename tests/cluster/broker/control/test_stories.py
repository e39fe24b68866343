"""Random stories: links cut, sessions expired, brokers killed and restarted, while leaders change ISRs and take ids.

Every write of a partition state is checked as it happens; after all is healed, every broker must agree with ZooKeeper.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter

import pytest

from cluster.broker.control.links.producer_ids import CoordinatorLoading
from cluster.metadata.memory import MemoryTree
from cluster.metadata.paths import CONTROLLER_EPOCH, topic_path
from cluster.metadata.store import SetData, StoreError
from cluster.seams.randomness import derive
from tests.cluster.broker.control.cluster import SESSION_MS, Cluster, ask, isr_change
from tests.support.virtual_time import run


class CheckedTree(MemoryTree):
    """Holds every write of a state node to the rules. What is wrong is kept: the code under test catches exceptions."""

    def __init__(self) -> None:
        super().__init__()
        self.violations: list[str] = []
        self.writes = 0

    def multi(self, session_id, operations):
        before = {op.path: self.exists(op.path) and self.get(op.path) for op in operations if isinstance(op, SetData)}
        results = super().multi(session_id, operations)
        for operation in operations:
            if isinstance(operation, SetData) and operation.path.endswith("/state"):
                self.writes += 1
                old, new = json.loads(before[operation.path][0]), json.loads(operation.data)
                for rule, holds in self._rules(operation, old, new):
                    if not holds:
                        self.violations.append(f"{rule}: {old} -> {new}")
        return results

    def _rules(self, operation, old, new):
        _, _, _, topic, _, partition, _ = operation.path.split("/")
        replicas = json.loads(self.get(topic_path(topic))[0])["partitions"][partition]
        is_election = new["leader"] != old["leader"]
        yield "written by today's controller", new["controller_epoch"] == int(self.get(CONTROLLER_EPOCH)[0])
        yield "a compare-and-set", operation.version >= 0
        yield "ISR is not empty", new["isr"]
        yield "ISR is within the assignment", set(new["isr"]) <= set(replicas)
        yield "leader is in the ISR", new["leader"] == -1 or new["leader"] in new["isr"]
        yield "leader epoch moves by one at most", new["leader_epoch"] - old["leader_epoch"] in (0, 1)
        yield "a new leader has a new epoch", not is_election or new["leader_epoch"] == old["leader_epoch"] + 1
        yield "elections are clean", not is_election or new["leader"] in (-1, *old["isr"])


class Story:
    """One run of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = derive(seed, "story")
        self.cluster = Cluster()
        self.cluster.tree = CheckedTree()
        self.ids: Counter[int] = Counter()
        self.told: list[str] = []

    async def tell(self, steps: int) -> None:
        cluster = self.cluster
        await cluster.start(1, 2, 3)
        await cluster.create_topic("t", 3, 3)
        clients = [asyncio.ensure_future(self._client(n)) for n in (1, 2, 3)]
        for _ in range(steps):
            await getattr(self, f"_{self.random.choice(['cut', 'expire', 'kill', 'link', 'heal', 'lose'])}")()
            await asyncio.sleep(self.random.uniform(0, SESSION_MS / 1000 * 1.5))
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        await self._heal_all()
        await self._agree()
        await cluster.stop()

    def _pick(self):
        return self.cluster.brokers[self.random.randint(1, 3)]

    async def _cut(self):
        broker = self._pick()
        self.told.append(f"cut {broker} from the store")
        broker.store.cut()

    async def _heal(self):
        for broker in self.cluster.brokers.values():
            broker.store.heal()
        for here in (1, 2, 3):
            for there in (1, 2, 3):
                self.cluster.network.heal(f"node-{here}", f"node-{there}")

    async def _expire(self):
        broker = self._pick()
        self.told.append(f"expire {broker}")
        broker.store.expire()

    async def _lose(self):
        broker = self._pick()
        self.told.append(f"lose of {broker}")
        if self.random.random() < 0.5:
            broker.store.lose_next_answer()
        else:
            broker.store.lose_next_request()

    async def _link(self):
        here, there = self.random.sample((1, 2, 3), 2)
        self.told.append(f"cut {here} -> {there}")
        self.cluster.network.cut(f"node-{here}", f"node-{there}", lossy=self.random.random() < 0.5)

    async def _kill(self):
        broker = self._pick()
        self.told.append(f"kill {broker}")
        await broker.crash()
        await asyncio.sleep(self.random.uniform(0, 3))
        await self.cluster.start(broker.broker_id)

    async def _heal_all(self):
        await self._heal()
        self.told.append("healed")

    async def _client(self, broker_id: int) -> None:
        """Take ids; and, as a leader would, propose what this broker believes to be due."""
        random = derive(self.random.randint(0, 1 << 30), "client", broker_id)
        while True:
            await asyncio.sleep(random.uniform(0.01, 0.3))
            broker = self.cluster.brokers[broker_id]
            if not hasattr(broker, "plane"):
                continue
            for _ in range(40):
                with contextlib.suppress(CoordinatorLoading):
                    self.ids[await broker.plane.next_producer_id()] += 1
            for (topic, partition), role in list(broker.roles.items()):
                if role.leader == broker_id:
                    others = [replica for replica in role.replicas if replica != broker_id and random.random() < 0.8]
                    known = {"leader_epoch": role.leader_epoch, "version": role.partition_epoch}
                    topic_id = broker.cache.topic(topic).topic_id
                    change = isr_change(topic_id, partition, known, (broker_id, *others), {})
                    with contextlib.suppress(OSError, StoreError):
                        async with asyncio.timeout(1):
                            for answer in await ask(broker.plane, change):
                                if answer.error_code == 0 and broker.roles[topic, partition] is role:
                                    role.partition_epoch = answer.partition_epoch
                                    role.isr = list(answer.isr)

    async def _agree(self) -> None:
        cluster = self.cluster
        brokers = cluster.brokers

        def settled() -> bool:
            if [broker.plane.is_controller for broker in brokers.values()].count(True) != 1:
                return False
            leader_known = {broker.plane.controller_id for broker in brokers.values()}
            if leader_known != {cluster.controller.broker_id}:
                return False
            for partition in range(3):
                state = cluster.state("t", partition)
                if state is None or state["leader"] < 0:
                    return False
                for broker in brokers.values():
                    known, role = broker.cache.partition("t", partition), broker.roles.get(("t", partition))
                    if known is None or role is None:
                        return False
                    if (known.leader, known.leader_epoch) != (state["leader"], state["leader_epoch"]):
                        return False
                    if known.isr != tuple(state["isr"]) or known.partition_epoch != state["version"]:
                        return False
                    if (role.leader, role.leader_epoch) != (state["leader"], state["leader_epoch"]):
                        return False
            return all(len(broker.cache.alive_brokers()) == 3 for broker in brokers.values())

        try:
            await cluster.until(settled, within_s=30)
        except TimeoutError:
            details = {
                n: (broker.plane, broker.roles, broker.cache.topic("t"), broker.cache.alive_brokers())
                for n, broker in brokers.items()
            }
            states = [cluster.state("t", n) for n in range(3)]
            pytest.fail(f"they do not agree after {self.told}: {states} {details}")
        assert cluster.tree.violations == [], f"after {self.told}"
        assert cluster.tree.writes > 0
        assert len(self.ids) > 0
        assert max(self.ids.values()) == 1, f"ids handed out twice after {self.told}"


@pytest.mark.parametrize("seed", range(6))
def test_after_any_story_all_brokers_agree(seed):
    """Writes are fenced and legal throughout, no id comes twice, and in the end there is one truth."""
    run(Story(seed).tell(12))


@pytest.mark.full
@pytest.mark.parametrize("seed", [*range(6, 12), *range(1000, 1300)])
def test_after_many_stories_all_brokers_agree(seed):
    """All brokers agree after each of many more stories, too."""
    run(Story(seed).tell(20))
