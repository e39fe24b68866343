"""A cluster that exists only as numbers, for tests of faults and of the injector. Time passes when it is slept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from chaos.faults.breakable import LoadPart, ProcessLife, ProducerSeen, SeenMember
from chaos.faults.damage import FrameAct, FrameCounts, LinkTraffic, Marks
from chaos.faults.elect_unclean import REASON as UNCLEAN
from chaos.faults.reaction import ClusterReaction
from chaos.faults.under_test import CoordinatorOf
from cluster.process.topology import link_names
from loadgen.group_plan import MemberName
from tests.chaos.fake_machine import FakeMachine
from tests.chaos.fake_orders import FakeOrders

#: What is done to single frames cuts no link.
FRAMES = ("hold", "delay", "drop", "repeat", "cut", "close")
#: Nor do toxics that only make it slow.
SLOW = ("latency", "bandwidth", "slicer", "slow_close")


@dataclass
class FakeProcess:
    """A broker's process as flags; ``deaf`` makes kills and stops do nothing, as a fault that does not bite."""

    pid: int
    deaf: bool = False
    running: bool = True
    suspended: bool = False

    def is_running(self) -> bool:
        return self.running

    def kill(self) -> None:
        self.running = self.deaf

    def suspend(self) -> None:
        self.suspended = not self.deaf

    def resume(self) -> None:
        self.suspended = False

    def is_suspended(self) -> bool:
        return self.suspended


@dataclass
class FakeLinks:
    """Links that carry 100 bytes each way whenever they are looked at, unless they are cut."""

    toxics: dict[str, dict[str, tuple[str, bool]]] = field(default_factory=dict)
    counted: dict[str, list[int]] = field(default_factory=dict)
    unanswered: set[str] = field(default_factory=set)
    #: Links on which no frame comes by.
    without_frames: set[str] = field(default_factory=set)
    deaf: bool = False
    made: int = 0
    #: What the last toxic of a type was told.
    attributes: dict[str, dict[str, int]] = field(default_factory=dict)
    #: What was to be done to frames.
    frame_acts: list[FrameAct] = field(default_factory=list)
    _turn: int = 1

    def is_cut(self, link: str) -> bool:
        return any(kind not in ("stall", "reset", *FRAMES, *SLOW) for kind, _ in self.toxics.get(link, {}).values())

    async def put_toxic(self, link: str, direction: str, kind: str, attributes: Mapping[str, int]) -> Marks:
        self.attributes[kind] = dict(attributes)
        return self._add(link, kind, True)

    async def take_down(self, link: str) -> Marks:
        self.counted.setdefault(link, [100, 100, 0, 0, 0, 0])[5] += not self.deaf
        return self._add(link, "down", False)

    async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
        """Slow as the toxics say; what jitter adds and takes away takes turns."""
        if self.is_cut(link):
            return None
        took_ms, self._turn = 1.0, -self._turn
        for kind, _ in self.toxics.get(link, {}).values():
            said = self.attributes.get(kind, {})
            if kind == "latency":
                took_ms += said["latency"] + self._turn * said["jitter"]
            elif kind == "bandwidth":
                took_ms += size_bytes / said["rate"]
            elif kind == "slicer":
                took_ms += size_bytes / said["average_size"] * said["delay"] / 1_000
        return took_ms

    async def close_ms(self, link: str, *, timeout_ms: int) -> float | None:
        delays = [self.attributes[kind]["delay"] for kind, _ in self.toxics.get(link, {}).values() if kind in SLOW]
        return None if self.is_cut(link) else 1.0 + sum(delays)

    async def is_refused(self, link: str) -> bool:
        return any(kind == "down" for kind, _ in self.toxics.get(link, {}).values())

    def holds_frames(self, link: str) -> bool:
        return any(kind == "hold" for kind, _ in self.toxics.get(link, {}).values())

    def _add(self, link: str, kind: str, lossless: bool) -> Marks:
        self.made += 1
        name = f"toxic{self.made}"
        if not self.deaf:
            self.toxics.setdefault(link, {})[name] = (kind, lossless)
        return Marks(link, (name,), kind)

    async def cut(self, link: str, direction: str, *, lossless: bool) -> Marks:
        return self._add(link, direction, lossless)

    async def stall(self, link: str, *, probability: float, min_ms: int, max_ms: int) -> Marks:
        return self._add(link, "stall", True)

    async def delay(self, link: str, direction: str, *, latency_ms: int) -> Marks:
        return self._add(link, "stall", True)

    async def reset_connections(self, link: str, direction: str) -> Marks:
        return self._add(link, "reset", True)

    async def act_on_frames(self, link: str, act: FrameAct) -> Marks:
        self.frame_acts.append(act)
        return self._add(link, act.act, not act.lossy)

    async def frame_counts(self, marks: Marks) -> FrameCounts:
        present = len(await self.remaining(marks)) if marks.link not in self.without_frames else 0
        longest_ms = max((act.delay_ms for act in self.frame_acts), default=0)
        return FrameCounts(2 * present, present, longest_ms * bool(present))

    async def heal(self, marks: Marks) -> None:
        for name in marks.toxics:
            self.toxics.get(marks.link, {}).pop(name, None)

    async def remaining(self, marks: Marks) -> tuple[str, ...]:
        return tuple(name for name in marks.toxics if name in self.toxics.get(marks.link, {}))

    async def stats(self, link: str) -> LinkTraffic | None:
        counted = self.counted.setdefault(link, [100, 100, 0, 0, 0, 0])
        present = list(self.toxics.get(link, {}).values())
        held = sum(kind == "stall" for kind, _ in present)
        for index, name in enumerate(("request", "response")):
            cuts = [lossless for kind, lossless in present if kind in (name, "both")]
            if cuts:
                counted[index + 2] += 0 if any(cuts) else 100
                held += 100 * any(cuts)
            elif name == "request" or link not in self.unanswered:
                counted[index] += 100
        counted[4] = held
        counted[5] += sum(kind in ("reset", "close") for kind, _ in present)
        resets = sum(kind == "reset" for kind, _ in present)
        counted[2:4] = (each + 10 * resets for each in counted[2:4])
        # a frame that is cut ends its connection, and the answer to one that went out twice is swallowed
        counted[5] += sum(kind == "cut" for kind, _ in present)
        counted[3] += sum(kind == "repeat" for kind, _ in present)
        return LinkTraffic(*counted)


class FakeZooKeeper(FakeProcess):
    """Its links carry requests alone while it does not serve."""

    def __init__(self, pid: int, links: FakeLinks, names: set[str]) -> None:
        super().__init__(pid)
        self._links, self._names = links, names

    def serves(self) -> bool:
        return self.running and not self.suspended

    def suspend(self) -> None:
        super().suspend()
        self._links.unanswered = set() if self.serves() else self._names

    def resume(self) -> None:
        super().resume()
        self._links.unanswered = set()


class FakeLoad:
    """One process of producers and two of members, three in each. Coordinators give up whose process is suspended."""

    def __init__(self) -> None:
        names = ("producers", "members-confluent", "members-native")
        self.all = {name: FakeProcess(600 + number) for number, name in enumerate(names)}
        for name in ("readers-confluent", "readers-native"):
            self.add(name)
        self.deaf = False
        self.acked = 0
        self.epoch = 4
        self.orders: list[tuple[str, tuple[str, ...], float]] = []
        self.names = {(name, place): MemberName(name, place, 7) for name in names[1:] for place in range(3)}
        #: Who is out of the group, and how often that was looked at since.
        self._absent: dict[tuple[str, int], int] = {}

    def add(self, name: str) -> None:
        """One more process."""
        self.all[name] = FakeProcess(600 + len(self.all))

    async def handed(self, name: str) -> int:
        return await self.acknowledged(name)

    async def kill(self, name: str) -> None:
        self.all[name].kill()

    def processes(self, part: LoadPart) -> tuple[str, ...]:
        return tuple(name for name, each in self.all.items() if name.startswith(part) and each.running)

    def process(self, name: str) -> FakeProcess:
        return self.all[name]

    async def acknowledged(self, name: str) -> int:
        self.acked += self.all[name].running and not self.all[name].suspended
        return self.acked

    async def last_acked_ns(self, name: str, partition: int) -> int:
        return await self.acknowledged(name)

    async def end_members(self, end: str, names: Sequence[str], absence_s: float) -> int:
        self.orders.append((end, tuple(names), absence_s))
        for parsed in () if self.deaf else map(MemberName.parse, names):
            assert parsed is not None
            place = parsed.process, parsed.place
            self._absent[place] = 0
            self.names[place] = MemberName(*place, parsed.instance + 1, len(self.orders))
        return len(self.orders)

    def seen_producers(self) -> dict[str, ProducerSeen]:
        self.epoch += self.all["producers"].suspended
        ids = ("gapless-1-producers-0", "gapless-1-producers-3")
        return {name: ProducerSeen(9, self.epoch, 10) for name in ids}

    def seen_members(self) -> list[SeenMember]:
        for place in list(self._absent):
            self._absent[place] += 1
            if self._absent[place] > 2:
                del self._absent[place]
        return [
            # a coordinator keeps the client.id of a static member that another one replaces
            SeenMember(f"{name}-id", str(MemberName(*place, 7) if name.place == 0 else name), _instance_id(name))
            for place, name in self.names.items()
            if place not in self._absent and not self.all[name.process].suspended
        ]


def _instance_id(name: MemberName) -> str | None:
    return f"{name.process}/{name.place}" if name.place == 0 else None


class FakeCluster:
    """Three brokers; the leader and the controller are the lowest of those that are reachable."""

    topic = "gapless"
    partitions = 2
    is_own = True
    session_timeout_ms = 100

    def __init__(self) -> None:
        self.broker_ids = (1, 2, 3)
        self.links = FakeLinks()
        self.link_names = tuple(str(name) for name in link_names(self.broker_ids, ("producers", "readers")))
        self.processes = {broker_id: FakeProcess(1000 + broker_id) for broker_id in self.broker_ids}
        #: Brokers of which no one can tell whether they run.
        self.unknown: set[int] = set()
        self.counters = {"gapless_produce_retries_total": 0.0, "gapless_produce_batches_total": 0.0}
        self.machines = {broker_id: FakeMachine(partial(self._end, broker_id)) for broker_id in self.broker_ids}
        self.orders = FakeOrders(self.topic, self.partitions, self.broker_ids, self.machines)
        #: Brokers whose link to ZooKeeper was seen to be cut.
        self.expired: set[int] = set()
        self.retries_after_cut = True
        self.coordinated_ids = 2
        self.marked_clean: set[int] = set()
        #: Followers that are out of the ISR.
        self.left_isr: set[int] = set()
        self._looks: Counter[int] = Counter()
        self.restarts = 0
        self._zookeeper_links = {name for name in self.link_names if name.endswith("-zk")}
        self.own_load = FakeLoad()
        self.own_zookeeper: FakeZooKeeper | None = FakeZooKeeper(500, self.links, self._zookeeper_links)

    def _reachable(self) -> list[int]:
        self.expired |= {broker_id for broker_id in self.broker_ids if self.links.is_cut(f"b{broker_id}-zk")}
        return [
            broker_id
            for broker_id, process in self.processes.items()
            if process.running and not process.suspended and not self.links.is_cut(f"b{broker_id}-zk")
        ]

    def process(self, broker_id: int) -> FakeProcess:
        return self.processes[broker_id]

    async def life(self, broker_id: int) -> ProcessLife:
        if broker_id in self.unknown:
            return ProcessLife.UNKNOWN
        return ProcessLife.RUNS if self.processes[broker_id].running else ProcessLife.ENDED

    def machine(self, broker_id: int) -> FakeMachine:
        return self.machines[broker_id]

    def _end(self, broker_id: int) -> None:
        self.processes[broker_id].kill()

    async def restart(self, broker_id: int) -> None:
        self.processes[broker_id] = FakeProcess(2000 + broker_id)
        self.restarts += 1
        self.machines[broker_id].failing = False
        self.machines[broker_id].held = 100
        self.machines[broker_id].limit = None

    async def stop(self, broker_id: int, timeout_ms: int) -> bool:
        process = self.processes[broker_id]
        process.kill()
        if not process.running:
            self.marked_clean.add(broker_id)
        return not process.running

    def stopped_cleanly(self, broker_id: int) -> bool:
        return broker_id in self.marked_clean

    def zookeeper(self) -> FakeZooKeeper | None:
        return self.own_zookeeper

    async def restart_zookeeper(self) -> None:
        self.own_zookeeper = FakeZooKeeper(501, self.links, self._zookeeper_links)

    async def zookeeper_answers(self, timeout_ms: int) -> bool:
        return self.own_zookeeper is not None and self.own_zookeeper.serves()

    async def journaled(self, event: str, broker_id: int | None = None) -> int:
        """Each session that ended is followed by a registration once its link is open again."""
        return 3 + (broker_id in self.expired and not self.links.is_cut(f"b{broker_id}-zk"))

    async def leader(self, partition: int) -> tuple[int, int] | None:
        reachable = self._reachable()
        in_sync = [each for each in reachable if each not in self.left_isr]
        if in_sync:
            return in_sync[0], 7
        return (reachable[0], 8) if reachable and self.orders.unclean_elections else None

    async def replicas(self, partition: int) -> tuple[int, ...]:
        return self.broker_ids

    async def isr(self, partition: int) -> frozenset[int]:
        """Without those that could not fetch from the leader at three looks: in the end they leave it."""
        reachable = self._reachable()
        leader = next((each for each in reachable if each not in self.left_isr), 0)
        self._looks.update(each for each in reachable if self.links.holds_frames(f"b{each}-b{leader}"))
        self.left_isr |= {each for each, looks in self._looks.items() if looks >= 3}
        return frozenset(reachable) - self.left_isr

    async def reaction(self) -> ClusterReaction:
        """Each death costs a leader epoch, and each return an ISR change as well."""
        dead = sum(not process.running for process in self.processes.values())
        cuts = self.restarts if self.orders.unclean_elections else 0
        return ClusterReaction(self.restarts + dead, 2 * self.restarts + dead, cuts)

    async def elections(self, topic: str, partition: int, reason: str) -> int:
        return self.orders.unclean_elections if reason == UNCLEAN else self.orders.preferred_elections

    async def controller(self) -> int | None:
        reachable = self._reachable()
        return reachable[0] if reachable else None

    async def coordinated(self, kind: CoordinatorOf) -> dict[str, int]:
        reachable = self._reachable()
        return {f"{kind}-{number}": reachable[0] for number in range(self.coordinated_ids if reachable else 0)}

    async def coordinator(self, kind: CoordinatorOf, key: str) -> int | None:
        return await self.controller()

    @property
    def load(self) -> FakeLoad:
        return self.own_load

    async def producers(self) -> dict[str, ProducerSeen]:
        return self.own_load.seen_producers()

    async def members(self, group: str) -> list[SeenMember] | None:
        return self.own_load.seen_members()

    async def alive(self) -> frozenset[int]:
        return frozenset(self._reachable())

    async def in_sync(self) -> bool:
        return len(self._reachable()) == len(self.broker_ids)

    async def answers(self, broker_id: int, timeout_ms: int) -> bool:
        process = self.processes[broker_id]
        return process.running and not process.suspended

    async def counter(self, broker_id: int, name: str) -> float | None:
        if self.links.is_cut("producers-b1") or self.links.holds_frames("producers-b1"):
            self.counters["gapless_produce_batches_total"] += 1
            self.counters["gapless_produce_retries_total"] += self.retries_after_cut
        self.counters["gapless_produce_batches_total"] += bool(self.left_isr)
        if name == "gapless_background_disk_seconds_sum":
            self.counters[name] = self.counters.get(name, 0.0) + self.machines[broker_id].delay_ms / 1000
        return self.counters.get(name, 0.0)
