"""Transcripts: scripts of commands over a real cluster in virtual time, and what the replicas look like after each.

Owns the form of the state (after the idea of etcd raft's interaction tests) and how a script is played; the commands
are in ``transcript_admin``, ``transcript_clients`` and ``transcript_faults``. A file of ``golden/`` has blocks of one
command, a line ``----`` and the state after it. Rewrite them with

    .venv/bin/python -m tests.simulation.transcript --rewrite

and commit that only if you understand every line that changed.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import logging
import os
import sys
from collections.abc import Mapping
from contextvars import Context
from pathlib import Path

from cluster.broker.rules import Rules
from cluster.invariants import InvariantBroken
from cluster.protocol.batch import iter_batches
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.records import decode_records
from tests.simulation import transcript_admin, transcript_clients, transcript_faults
from tests.simulation.client import Client
from tests.simulation.inspector import Inspector
from tests.simulation.nodes import MemoryCluster
from tests.simulation.transcript_clients import TOPIC
from tests.simulation.transcript_faults import RefusingStorage
from tests.support.virtual_time import run

GOLDEN = Path(__file__).parent / "golden"
SEPARATOR = "----"
#: Longer than any transcript: what is muted does not arrive.
NEVER_MS = 1e9
ROUTINE_MS = 1.0

#: name -> what is called with the transcript and the words after the name; its docstring is the syntax
COMMANDS = {**transcript_admin.COMMANDS, **transcript_clients.COMMANDS, **transcript_faults.COMMANDS}


class Transcript(MemoryCluster):
    """Brokers 1 to 4 are there; ``cluster`` starts those that are named."""

    def __init__(self, rules: Rules | None = None) -> None:
        super().__init__(4, rules=rules, delay=self._delay)
        self.storages = {broker_id: RefusingStorage() for broker_id in self.broker_ids}
        #: Who has replicas of the partition, or had some before it was moved.
        self.replicas: list[int] = []
        self.muted: set[tuple[str, str]] = set()
        #: How long frames take, in milliseconds, where that is not the routine.
        self.slow: dict[tuple[str, str], float] = {}
        #: What was asked by its value (or ``delete``, ``elect``), and what will be said of it.
        self.asked: dict[str, asyncio.Task[str]] = {}
        self.clients: dict[int, Client] = {}
        #: The values that clients were told to be safe.
        self.acknowledged: list[str] = []
        #: What the commands said, in order.
        self.said: list[str] = []

    def _delay(self, source: str, destination: str, size_bytes: int) -> float:
        # Connections are opened all the same: only frames have a size.
        if not size_bytes:
            return ROUTINE_MS
        return NEVER_MS if (source, destination) in self.muted else self.slow.get((source, destination), ROUTINE_MS)

    def configure(self, properties: Mapping[str, str]) -> None:
        """For brokers that are started from now on."""
        self._properties.update(properties)

    async def do(self, command: str) -> str:
        """Carry out one command and describe what is then."""
        name, *words = command.split()
        said = await COMMANDS[name](self, *words)
        self.said += [said] if said else []
        return "\n".join([*([said] if said else []), *self.state()])

    def broker_failed(self, broker_id: int, error: Exception) -> None:
        """As its process does, it ends."""
        assert str(os.strerror(errno.EIO)) in str(error), error
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: loop.create_task(self.crash(broker_id)), context=Context())

    # What is

    def state(self) -> list[str]:
        """One line for each replica: its role, its epoch, its watermark, its ISR if it leads, where its log starts if
        that is not 0, and its records."""
        return [self._line(broker_id) for broker_id in self.replicas]

    def _line(self, broker_id: int) -> str:
        process = self.processes.get(broker_id)
        manager = None if process is None else process.node._replicas
        replica = None if manager is None else manager.partitions.get((TOPIC, 0))
        if replica is None:
            role = "dead" if process is None else "no role"
        elif replica.leader is not None:
            isr = ",".join(map(str, sorted(replica.leader.isr.committed)))
            role = f"leads in {replica.leader_epoch}, watermark {replica.high_watermark}, isr {isr}"
        else:
            leader = f"follows {replica.leader_id}" if replica.leader_id >= 0 else "follows nobody"
            role = f"{leader} in {replica.leader_epoch}, watermark {replica.high_watermark}"
        start = 0 if replica is None else replica.log.log_start_offset
        role += f", start {start}" if start else ""
        return f"{broker_id} {role}: {self._records_text(broker_id)}".rstrip()

    def _records_text(self, broker_id: int) -> str:
        """``m1@0``: a value with its leader epoch; ``7:m1@0`` where the offset before it is missing."""
        texts, expected = [], 0
        for offset, value, epoch in self.records(broker_id):
            texts.append(f"{value}@{epoch}" if offset == expected else f"{offset}:{value}@{epoch}")
            expected = offset + 1
        return " ".join(texts)

    def records(self, broker_id: int) -> list[tuple[int, str, int]]:
        """(offset, value, leader epoch) of all that a broker's log holds, in order."""
        data = self.log_bytes(broker_id, TOPIC)
        found = []
        for position, header in iter_batches(data):
            try:
                records = decode_records(data[position : position + header.size_bytes])
            except CorruptBatch:
                found.append((header.base_offset, "unreadable", header.leader_epoch))
                continue
            found += [(record.offset, (record.value or b"").decode(), header.leader_epoch) for record in records]
        return found

    def values(self, broker_id: int) -> list[str]:
        return [value for _, value, _ in self.records(broker_id)]

    def lost(self) -> list[str]:
        """What was acknowledged and is not in the log of the leader."""
        there = self.values(self.leader(TOPIC))
        return [value for value in self.acknowledged if value not in there]


def commands_of(text: str) -> list[tuple[str, str]]:
    """(comments and command, command) of each block."""
    blocks = []
    for block in text.strip().split("\n\n"):
        head = block.split(f"\n{SEPARATOR}")[0]
        command = [line for line in head.splitlines() if not line.startswith("#")]
        assert len(command) == 1, f"one command a block: {block}"
        blocks.append((head, command[0]))
    return blocks


def play(text: str, rules: Rules | None = None) -> tuple[str, Transcript]:
    """The script of ``text`` with the states that it has now, and the cluster in the end."""

    async def main() -> tuple[str, Transcript]:
        transcript = Transcript(rules)
        broken: list[InvariantBroken] = []
        inspector = Inspector(transcript, lambda _broker, error: broken.append(error))
        script = commands_of(text)
        # a log that was written by hand is ahead of what its leader knows
        is_inspected = rules is None and not any(command.startswith("leap ") for _head, command in script)
        if is_inspected:
            inspector.install()
        blocks = []
        for head, command in script:
            blocks.append(f"{head}\n{SEPARATOR}\n{await transcript.do(command)}")
        assert not transcript.failures, transcript.failures
        if is_inspected:
            inspector.inspect_all()
        assert not broken, broken
        return "\n\n".join(blocks) + "\n", transcript

    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        return run(main())
    finally:
        logging.disable(level)


def rewrite() -> list[str]:
    """Rewrite all files; returns the names of those that changed."""
    changed = []
    for path in sorted(GOLDEN.glob("*.txt")):
        before = path.read_text()
        after, _ = play(before)
        if after != before:
            path.write_text(after)
            changed.append(path.name)
    return changed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests.simulation.transcript", description=__doc__)
    parser.add_argument("--rewrite", action="store_true", required=True, help="rewrite the golden files")
    parser.parse_args()
    sys.stdout.write("".join(f"{name} changed\n" for name in rewrite()))
