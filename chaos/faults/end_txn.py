"""What the faults on EndTxn share: the coordinator of a transactional id is drawn, and frames of its links are hit."""

from __future__ import annotations

from abc import abstractmethod

from chaos.faults.base import Fault, Probe, until
from chaos.faults.damage import FrameAct
from chaos.faults.steps import choose_seat, links_of_step


class EndTxnFault(Fault):
    """Bites when the proxy acted on an EndTxn, or its response."""

    duration_s = (2.0, 4.0)
    recovery_s = 2.0
    hits = "traffic"
    hits_client_links = True
    acts_on_frames = True
    needs_coordinator = "transaction"
    targets = ("partition", "transactional_id")

    @abstractmethod
    def act(self) -> FrameAct:
        """What is done to EndTxn."""

    async def choose(self) -> str:
        wanted = self.injection.target.get("transactional_id")
        seat = await choose_seat(self.cluster, "transaction", self.random, wanted)
        self._broker_id = seat.broker_id
        self._links = links_of_step(self.cluster.link_names, seat.broker_id, to_brokers=False)
        return str(seat)

    async def inject(self) -> None:
        await self.damage.act_on_frames(self._links, self.act())

    async def bites(self) -> Probe:
        seen: dict[str, object] = {"broker": self._broker_id}

        async def acted() -> bool:
            counts = await self.damage.frame_counts()
            seen["frames"], seen["frames_hit"] = counts.matched, counts.acted
            return counts.acted > 0

        return Probe(await until(acted, clock=self.clock, timeout_ms=4_000, interval_ms=20), seen)

    async def heal(self) -> None:
        self._hit = (await self.damage.frame_counts()).acted
        await self.damage.heal()

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        return Probe(clear, {"links_clear": clear, "frames_hit": self._hit})
