"""The base of faults that break a coordinator at a step: draws the coordinator and the step, and traps its frame.

Does not own what is done to the broker while the frame is held: each fault does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from chaos.faults.base import Fault, Probe, Reach
from chaos.faults.steps import STEPS, CoordinatorStep, Trap, choose_seat, has_moved
from chaos.faults.under_test import CoordinatorOf

#: The key in an injection's target that names the transactional id or group whose coordinator is hit.
NAMED_AS: Mapping[CoordinatorOf, str] = {"group": "group", "transaction": "transactional_id"}


class AtStep(Fault):
    """Waits for a frame of the requested step, or of any other step if this one was drawn and does not occur."""

    reach: ClassVar[Reach] = "processes"
    least_brokers = 2
    least_replicas = 2
    hits_client_links = True
    acts_on_frames = True

    _broker_id: int
    _came: CoordinatorStep | None = None

    @property
    @abstractmethod
    def coordinates(self) -> CoordinatorOf:
        """What the coordinator that it hits coordinates."""

    async def choose(self) -> str:
        wanted = self.injection.target.get(NAMED_AS[self.coordinates])
        self._seat = await choose_seat(self.cluster, self.coordinates, self.random, wanted)
        self._broker_id = self._seat.broker_id
        steps = STEPS[self.coordinates]
        self._step = steps[self.injection.parameters.get("step") or self.random.choice(sorted(steps))]
        return f"{self._seat}, at {self._step.name}"

    async def at_step(self, break_broker: Callable[[], Awaitable[None]], *, lossy: bool) -> None:
        """Call ``break_broker`` while a frame is held, then deliver the frame or, if ``lossy``, drop it.

        Does nothing if no frame comes by.
        """
        others = [step for step in STEPS[self.coordinates].values() if step is not self._step]
        trap = Trap(self.cluster, self._seat, self.clock, self.damage, lossy=lossy)
        self._came = await trap.wait(self._step, [] if "step" in self.injection.parameters else others)
        if self._came is not None:
            await break_broker()
        await self.damage.heal()

    @property
    def came_by(self) -> bool:
        """Whether a frame came by, so that the broker was broken."""
        return self._came is not None

    def nothing_came(self) -> Probe:
        """The result of the first probe if no frame came by."""
        return Probe(False, {"broker": self._broker_id, "came_by": False})

    async def moved(self) -> tuple[bool, Mapping[str, Any]]:
        """Whether another broker takes over as coordinator within ``patience_ms``, and the figures that show it."""
        moved = await has_moved(self.cluster, self._seat, self.clock, self.patience_ms)
        return moved, {"step": self._came.name if self._came else "", "coordinator_moved": moved}

    @classmethod
    def missed(cls, seen: Mapping[str, Any]) -> str:
        if seen.get("came_by") is False:
            return "no such request or response came by; does anything use this coordinator, through the links?"
        return super().missed(seen)
