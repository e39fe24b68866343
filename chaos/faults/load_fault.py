"""What the faults on the load share: they need a load that gapless started. Owns the refusal of a run without one.

Coordinators exist for clients that die, stop or restart. What the load had recorded before remains evidence, and what
was in flight has the outcome that its client learns, or ``info``.
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
