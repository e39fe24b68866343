"""Firings: the record of each time a defect took effect, on disk before it does.

Owns the format of a line. The verifier does not use it to judge; it lets a report say that the verdict found what was
planted.
"""

from __future__ import annotations

import json

from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage

FIRINGS_FILE = "defects.jsonl"


class Firings:
    """One broker's ``nodes/<broker>/defects.jsonl``."""

    def __init__(self, node_directory: str, broker_id: int, storage: Storage, clock: Clock) -> None:
        self.directory = node_directory
        self._path = f"{node_directory}/{FIRINGS_FILE}"
        self._broker_id = broker_id
        self._storage = storage
        self._clock = clock

    def __repr__(self) -> str:
        return f"<Firings {self._path}>"

    def record(self, defect: str, log: PartitionLog, header: BatchHeader, offset: int) -> None:
        """Note that ``defect`` is about to treat this batch wrongly. Raises ``OSError``: then it must not."""
        self.note(
            defect,
            topic=log.topic,
            partition=log.partition,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            count=header.record_count,
            offset=offset,
        )

    def note(self, defect: str, **about: str | int | bool) -> None:
        """The same for something other than a batch; ``about`` says what. Raises ``OSError``."""
        line = {"defect": defect, "broker": self._broker_id, **about, "monotonic_ns": self._clock.monotonic_ns()}
        self._storage.append_line(self._path, json.dumps(line))
