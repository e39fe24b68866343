"""The file in which a log notes, at each roll, all that it knows of its producers.

Owns the text of ``%020d.producers``, a file of ours beside Kafka's snapshot of the same offset (whose loader passes
over names it does not know). A snapshot has only the newest batch of each producer; with this the next start goes on
with the last five, and with what is known of the sequences before, without reading the batches below.

It carries the leader epoch of the record before its offset. An offset and its epoch name one record in all replicas'
logs for ever, so a file that a power loss brought back, of records that were cut off since, is found out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from crc32c import crc32c

from cluster.log.clean_state import producer_entry, producer_row
from cluster.log.errors import CheckpointError
from cluster.log.sequence import ProducerEntry

_VERSION = 1


def histories_text(leader_epoch: int, entries: Iterable[ProducerEntry]) -> str:
    """A line with version and CRC-32C, a line of JSON. ``leader_epoch`` is -1 if there is none."""
    body = json.dumps([leader_epoch, [producer_row(entry) for entry in entries]], separators=(",", ":"))
    return f"{_VERSION} {crc32c(body.encode()):08x}\n{body}\n"


def parse_histories(data: bytes) -> tuple[int, list[ProducerEntry]]:
    """(leader epoch, entries). Raises ``CheckpointError``."""
    head, _, body = data.partition(b"\n")
    body = body.rstrip(b"\n")
    if head != f"{_VERSION} {crc32c(body):08x}".encode():
        raise CheckpointError(f"producers' histories that begin with {head!r:.40}, which does not fit the rest")
    leader_epoch, rows = json.loads(body)
    return int(leader_epoch), [producer_entry(*row) for row in rows]
