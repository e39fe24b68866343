"""What the conductor writes of leaders: changes alone, and between which two looks they came."""

from __future__ import annotations

from chaos.conductor.leaders import LeaderWatch
from chaos.conductor.observer import Observer
from chaos.conductor.view import PartitionView
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage
from tests.chaos.fake_cluster import FakeTransport


def seen(leader: int, epoch: int, *isr: int) -> dict[int, PartitionView]:
    return {0: PartitionView(leader, epoch, (1, 2, 3), isr)}
