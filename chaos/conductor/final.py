"""The final phase (docs/design.md "Phases of a run"): sentinels, the last full read, and the final state of replicas.

Owns when a partition's final state counts as reached, and how the programs of this phase are run. Does not own these
programs, the sentinel and the reader: they belong to loadgen and run as children, so that the conductor needs no client
library.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from chaos.conductor.observed_cluster import ObservedPartition
from chaos.conductor.observer import Observer
from chaos.faults.base import until
from cluster.client.errors import AdminError
from cluster.client.offset_listing import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from cluster.process.supervisor import Supervisor
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage
from verifier.evidence.run_model import FinalPartition

logger = logging.getLogger(__name__)

#: The time limit for one request for offsets.
ASK_MS = 3_000


class FinalState:
    """Collects the final state of each partition, step by step.

    The status of a partition stays ``unavailable: REASON`` until everything is known, and is then ``ok``.
    """

    def __init__(self, topic: str, partitions: int, observer: Observer, clock: Clock) -> None:
        self._topic = topic
        self._observer = observer
        self._clock = clock
        self.partitions = [
            FinalPartition(topic, index, status="unavailable: not examined") for index in range(partitions)
        ]

    def sentinels(self, offsets: Mapping[int, int]) -> None:
        """Note the offset of each partition's sentinel, by partition. One that was not acknowledged is absent."""
        for index, known in enumerate(self.partitions):
            offset = offsets.get(index)
            status = "unavailable: its sentinel was not acknowledged in time" if offset is None else known.status
            self.partitions[index] = replace(known, sentinel_offset=offset, status=status)

    async def replicas(self, timeout_ms: int) -> None:
        """Wait until each partition's replicas have the same log end offset and its high watermark has reached it."""

        async def settled() -> bool:
            try:
                await self._look()
            except (OSError, AdminError) as error:
                logger.info("the final state has not been reached yet: %r", error)
                return False
            return all(each.status == "ok" for each in self.partitions)

        await until(settled, clock=self._clock, timeout_ms=timeout_ms, interval_ms=100)

    async def _look(self) -> None:
        view = await self._observer.view()
        keys = [(self._topic, each.partition) for each in self.partitions]
        admin = self._observer.admin(ASK_MS)
        try:
            ends = await admin.replica_end_offsets(keys)
            marks = await admin.list_offsets(dict.fromkeys(keys, LATEST_TIMESTAMP))
            starts = await admin.list_offsets(dict.fromkeys(keys, EARLIEST_TIMESTAMP))
        finally:
            await admin.close()
        self.partitions = [
            judge_partition(each, view.partitions.get(each.partition), ends[key], marks[key].offset, starts[key].offset)
            for each, key in zip(self.partitions, keys, strict=True)
        ]


def judge_partition(
    known: FinalPartition, seen: ObservedPartition | None, ends: Mapping[int, int], high_watermark: int, log_start: int
) -> FinalPartition:
    """One partition's final state, from the answers of its replicas and its leader. Pure.

    ``ends`` maps broker ids to log end offsets.
    """
    if known.sentinel_offset is None:
        return replace(known, status="unavailable: its sentinel was not acknowledged in time")
    if seen is None or seen.leader < 0:
        return replace(known, status="unavailable: it has no leader")
    result = replace(
        known,
        leader=seen.leader,
        leader_epoch=seen.leader_epoch,
        high_watermark=high_watermark,
        log_start_offset=log_start,
        log_end_offsets=dict(ends),
    )
    if set(ends) != set(seen.replicas) or len(set(ends.values())) != 1:
        return replace(result, status=f"unavailable: log end offsets differ: {dict(ends)}")
    if high_watermark != ends[seen.leader]:
        return replace(result, status=f"unavailable: the high watermark {high_watermark} is not at the log end {ends}")
    return replace(result, status="ok")


async def run_json_program(
    supervisor: Supervisor, storage: Storage, name: str, argv: Sequence[str], log_path: str, timeout_s: float
) -> tuple[int | None, dict[str, object]]:
    """Run a child that prints a JSON object as its last line. Returns its exit code and that object.

    A child that runs longer than ``timeout_s`` is killed; its exit code is None. An object that cannot be parsed is
    empty.
    """
    child = await asyncio.to_thread(supervisor.start_program, name, list(argv), None, None, log_path)
    code = await asyncio.to_thread(child.wait, timeout_s)
    if code is None:
        await asyncio.to_thread(child.kill)
        logger.warning("%s did not end within %.0f s and was ended", name, timeout_s)
    lines = [line for line in storage.read(log_path).decode(errors="replace").splitlines() if line.startswith("{")]
    try:
        found = json.loads(lines[-1]) if lines else {}
    except ValueError:
        found = {}
    return code, found if isinstance(found, dict) else {}
