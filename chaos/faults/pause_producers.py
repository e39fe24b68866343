"""``pause-producers``: SIGSTOP a process of transactional producers until they are fenced; SIGCONT it.

A transaction that stays open is aborted when it times out, or by a rival that takes over the ``transactional.id``, and
the epoch is bumped: the producer wakes up as a zombie with an open transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.faults.base import PreconditionMissing, until
from chaos.faults.breakable import ProducerSeen
from chaos.faults.pause_load import PauseLoad
from loadgen.transactional_ids import may_be_of

#: A coordinator looks for transactions that are open for too long every 10 s, and aborts what it finds.
EXPIRY_MS = 10_000
_WORKS_AGAIN_MS = 30_000
_LOOK_MS = 200.0


class PauseProducers(PauseLoad):
    """Bites when the process is stopped, and the producer epoch of at least one of its ids has changed since then."""

    name = "pause-producers"
    summary = "SIGSTOP a process of transactional producers until they are fenced (timeout, or a rival); SIGCONT it"
    part = "producers"
    needs_load = "producers"
    #: Longer than the default timeout of the load's transactions, plus the time until the coordinator notices.
    duration_s = (16.0, 18.0)
    recovery_s = 5.0
    #: No other fault that needs transactions could bite meanwhile.
    hits = "everything"

    async def look_before(self) -> None:
        if not await self._epochs():
            raise PreconditionMissing(f"no transactional id of {self._name} is known")

    async def look_after(self) -> None:
        self._before = await self._epochs()

    async def given_up(self) -> dict[str, Any]:
        fenced: set[str] = set()

        async def some() -> bool:
            now = await self._epochs()
            fenced.update(name for name, seen in now.items() if _whose(seen) != _whose(self._before.get(name, seen)))
            return bool(fenced)

        timeout_ms = max((each.timeout_ms for each in self._before.values()), default=0)
        patience_ms = timeout_ms + EXPIRY_MS + self.patience_ms
        await until(some, clock=self.clock, timeout_ms=patience_ms, interval_ms=_LOOK_MS)
        return {"fenced": len(fenced)}

    async def heal(self) -> None:
        self._acked = await self._load.acknowledged(self._name)
        await super().heal()

    async def back(self) -> tuple[bool, dict[str, Any]]:
        async def more() -> bool:
            return await self._load.acknowledged(self._name) > self._acked

        works = await until(more, clock=self.clock, timeout_ms=_WORKS_AGAIN_MS, interval_ms=_LOOK_MS)
        return works, {"acknowledged_again": works}

    async def _epochs(self) -> Mapping[str, ProducerSeen]:
        known = await self.cluster.producers()
        return {name: seen for name, seen in known.items() if may_be_of(name, self._name)}


def _whose(seen: ProducerSeen) -> tuple[int, int]:
    return seen.producer_id, seen.producer_epoch
