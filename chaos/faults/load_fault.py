"""The base of faults on the load, which need a load that gapless started. Owns the refusal of a run without one.

Coordinators exist for clients that die, stop or restart. Everything that the load has recorded before the fault remains
evidence. Requests in flight get the outcome that their client learns, else ``info``.
"""

from __future__ import annotations

from typing import ClassVar

from chaos.faults.base import Fault, PreconditionMissing, Reach
from chaos.faults.breakable import LoadUnderTest
from chaos.schedules.kinds import Hits


class LoadFault(Fault):
    """A fault on a part of the load (``needs_load``)."""

    reach: ClassVar[Reach] = "clients"
    hits: ClassVar[Hits] = "load"

    @property
    def _load(self) -> LoadUnderTest:
        if self.cluster.load is None:
            raise PreconditionMissing("the load is not this run's own")
        return self.cluster.load
