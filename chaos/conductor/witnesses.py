"""Starts the watches that run during an experiment: of leaders and, if there are transactions, of last stable offsets.

Owns which watches a run has. Does not own what they write (``leaders``, ``stable_offsets``).
"""

from __future__ import annotations

import asyncio

from chaos.conductor.leaders import LeaderWatch
from chaos.conductor.observer import Observer
from chaos.conductor.stable_offsets import StableWatch
from chaos.conductor.workbench import Workbench
from chaos.experiment.experiment import Experiment
from chaos.experiment.planned import coordinators_at_work


class Witnesses:
    """The watches of one run. ``output`` is the second topic that the load writes, if any."""

    def __init__(self, settings: Experiment, bench: Workbench, observer: Observer, output: str | None) -> None:
        tools = observer, bench.clock, bench.storage
        self._watches: list[LeaderWatch | StableWatch] = [
            LeaderWatch(*tools, str(bench.directory.leaders_jsonl), settings.topic)
        ]
        if "transaction" in coordinators_at_work(settings.workload):
            topics = dict.fromkeys(filter(None, (settings.topic, output)), settings.partitions)
            self._watches.append(StableWatch(*tools, str(bench.directory.stable_offsets_jsonl), topics))

    async def run(self) -> None:
        """Watch until cancelled."""
        await asyncio.gather(*(each.run() for each in self._watches))
