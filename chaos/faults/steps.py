"""The steps of a transaction and of a group at which a coordinator can be broken: the frame of each, and its links.

Owns the table of steps, and the trap that holds such a frame, so that a broker can be broken at exactly that step. Does
not own how the broker is broken: each fault does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Literal

from chaos.faults.base import PreconditionMissing, until
from chaos.faults.breakable import ProcessLife
from chaos.faults.broker_links import links_of_clients, links_to_brokers
from chaos.faults.damage import OCCASION_MS, Damage, FrameAct
from chaos.faults.under_test import ClusterUnderTest, CoordinatorOf
from cluster.protocol.apis import ApiKey
from cluster.seams.clock import Clock

#: How long the trap waits for a frame of the drawn step before it tries others.
_PATIENCE_MS = 4_000
#: How long it then waits for each step in turn.
_TURN_MS = 1_500
_LOOK_MS = 10.0


@dataclass(frozen=True, slots=True)
class CoordinatorStep:
    """A frame that a coordinator receives from clients, or sends to them or (``to_brokers``) to another broker."""

    name: str
    api_keys: tuple[ApiKey, ...]
    direction: Literal["request", "response"]
    to_brokers: bool = False


_ADDITIONS = (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN)
_COMMITS = (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT)
_STEPS: Mapping[CoordinatorOf, tuple[CoordinatorStep, ...]] = {
    "transaction": (
        CoordinatorStep("add-partitions-response", _ADDITIONS, "response"),
        CoordinatorStep("end-txn-request", (ApiKey.END_TXN,), "request"),
        CoordinatorStep("end-txn-response", (ApiKey.END_TXN,), "response"),
        CoordinatorStep("write-txn-markers", (ApiKey.WRITE_TXN_MARKERS,), "request", to_brokers=True),
    ),
    "group": (
        CoordinatorStep("join-group", (ApiKey.JOIN_GROUP,), "request"),
        CoordinatorStep("sync-group", (ApiKey.SYNC_GROUP,), "request"),
        CoordinatorStep("offset-commit-request", _COMMITS, "request"),
        CoordinatorStep("offset-commit-response", _COMMITS, "response"),
    ),
}
STEPS: Mapping[CoordinatorOf, Mapping[str, CoordinatorStep]] = {
    kind: {step.name: step for step in steps} for kind, steps in _STEPS.items()
}
_WORDS: Mapping[CoordinatorOf, str] = {"transaction": "transactional id", "group": "group"}


@dataclass(frozen=True, slots=True)
class Seat:
    """A coordinator, and one transactional id or group that it coordinates (``key``)."""

    kind: CoordinatorOf
    key: str
    broker_id: int

    def __str__(self) -> str:
        return f"broker {self.broker_id}, coordinator of {_WORDS[self.kind]} {self.key}"


async def choose_seat(
    cluster: ClusterUnderTest, kind: CoordinatorOf, random: Random, wanted: str | None = None
) -> Seat:
    """The coordinator of ``wanted`` or, with None, of a drawn transactional id or group. Raises PreconditionMissing.

    The id or group must be in use, and the coordinator must run.
    """
    found = await cluster.coordinated(kind)
    if not found:
        raise PreconditionMissing(f"no {_WORDS[kind]} is in use")
    key = wanted or random.choice(sorted(found))
    if key not in found:
        raise PreconditionMissing(f"the {_WORDS[kind]} {key} is not in use")
    broker_id = found[key]
    if await cluster.life(broker_id) is not ProcessLife.RUNS:
        raise PreconditionMissing(f"broker {broker_id} coordinates {_WORDS[kind]} {key} but does not run")
    return Seat(kind, key, broker_id)


async def has_moved(cluster: ClusterUnderTest, seat: Seat, clock: Clock, timeout_ms: float) -> bool:
    """Whether another broker becomes the coordinator within ``timeout_ms``."""

    async def moved() -> bool:
        found = await cluster.coordinator(seat.kind, seat.key)
        return found is not None and found != seat.broker_id

    return await until(moved, clock=clock, timeout_ms=timeout_ms)


class Trap:
    """Holds the first frame of a step from or to one broker, on any of its links.

    ``lossy``: the held frame is dropped when the trap is removed.
    """

    def __init__(self, cluster: ClusterUnderTest, seat: Seat, clock: Clock, damage: Damage, *, lossy: bool) -> None:
        self._cluster = cluster
        self._seat = seat
        self._clock = clock
        self._damage = damage
        self._lossy = lossy

    async def wait(self, drawn: CoordinatorStep, others: Sequence[CoordinatorStep]) -> CoordinatorStep | None:
        """Wait until a frame of the drawn step is held or, if none comes, one of the ``others``; returns its step.

        Returns None if no such frame comes within ``OCCASION_MS``.
        """
        give_up_ms = self._clock.monotonic_ms() + OCCASION_MS
        step, turn_ms = drawn, _PATIENCE_MS if others else OCCASION_MS
        turns = cycle([*others, drawn])
        while not await self._comes(step, turn_ms):
            await self._damage.heal()
            if self._clock.monotonic_ms() >= give_up_ms:
                return None
            step, turn_ms = next(turns), _TURN_MS
        return step

    async def _comes(self, step: CoordinatorStep, timeout_ms: float) -> bool:
        among = links_to_brokers if step.to_brokers else links_of_clients
        links = among(self._cluster.link_names, self._seat.broker_id)
        act = FrameAct("hold", tuple(map(int, step.api_keys)), step.direction, count=1, lossy=self._lossy)
        await self._damage.act_on_frames(links, act)

        async def came() -> bool:
            return (await self._damage.frame_counts()).acted > 0

        return await until(came, clock=self._clock, timeout_ms=timeout_ms, interval_ms=_LOOK_MS)
