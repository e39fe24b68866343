"""Transcripts: scripts of commands over a real cluster in virtual time, and what the replicas look like after each.

Owns the commands and the form of the state (after the idea of etcd raft's interaction tests). A file of ``golden/`` has
blocks of one command, a line ``----`` and the state after it. Rewrite them with

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
from contextvars import Context
from pathlib import Path

from cluster.broker.rules import Rules
from cluster.invariants import InvariantBroken
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import iter_batches
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.protocol.records import decode_records
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.storage import File
from tests.cluster.control.virtual_time import run
from tests.simulation.client import Client, batch
from tests.simulation.inspector import Inspector
from tests.simulation.nodes import MemoryCluster

GOLDEN = Path(__file__).parent / "golden"
SEPARATOR = "----"
TOPIC = "t"
#: Longer than any transcript: what is muted does not arrive.
NEVER_MS = 1e9
BATCH_OFFSET = 12


class RefusingStorage(MemoryStorage):
    """A disk that can fail. ``refused`` is a part of the paths that cannot be written; empty for none."""

    refused = ""

    def open(self, path: str, *, create: bool = True) -> File:
        if self.refused and self.refused in path:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return super().open(path, create=create)


class Transcript(MemoryCluster):
    """Brokers 1 to 4 are there; ``cluster`` starts those that are named, in that order: the first is the controller."""

    def __init__(self, rules: Rules | None = None) -> None:
        super().__init__(4, rules=rules, delay=self._delay)
        self.storages = {broker_id: RefusingStorage() for broker_id in self.broker_ids}
        self.acknowledged: list[str] = []
        self.replicas: list[int] = []
        self._muted: set[tuple[str, str]] = set()
        self._writing: dict[str, asyncio.Task[str]] = {}
        self._clients: dict[int, Client] = {}
        self._commands = {
            "cluster": self._cluster,
            "topic": self._topic,
            "write": self._write,
            "answer": self._answer,
            "delete": self._delete,
            "cut": self._cut,
            "heal": self._heal,
            "mute": self._mute,
            "kill": self._kill,
            "power-loss": self._power_loss,
            "wipe": self._wipe,
            "restart": self._restart,
            "sync": self._sync,
            "refuse": self._refuse,
            "allow": self._allow,
            "wait": self._wait,
        }

    def _delay(self, source: str, destination: str, size_bytes: int) -> float:
        # Connections are opened all the same: only frames have a size.
        return NEVER_MS if size_bytes and (source, destination) in self._muted else 1.0

    async def do(self, command: str) -> str:
        """Carry out one command and describe what is then."""
        name, *words = command.split()
        said = await self._commands[name](*words)
        return "\n".join([*([said] if said else []), *self.state()])

    # The cluster

    async def _cluster(self, *words: str) -> str:
        """cluster 2 1 3 key=value ...: start brokers."""
        self._properties.update(word.split("=") for word in words if "=" in word)
        brokers = [int(word) for word in words if "=" not in word]
        for broker_id in brokers:
            await self.start(broker_id)
        await self.until(lambda: all(len(n.metadata.alive_brokers()) == len(brokers) for n in self.nodes.values()))
        return f"brokers {' '.join(map(str, brokers))}"

    async def _topic(self, *words: str) -> None:
        """topic 1 2 3 key=value ...: a topic with one partition on these brokers; the first leads."""
        self.replicas = [int(word) for word in words if "=" not in word]
        request = request_class(ApiKey.CREATE_TOPICS)
        topic = request.CreatableTopic(
            name=TOPIC,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                request.CreatableTopic.CreatableReplicaAssignment(partition_index=0, broker_ids=self.replicas)
            ],
            configs=[
                request.CreatableTopic.CreatableTopicConfig(name=key, value=value)
                for key, value in (word.split("=") for word in words if "=" in word)
            ],
        )
        controller = next(broker_id for broker_id, node in self.nodes.items() if node.control.is_controller)
        connection = await self.connect(controller)
        response = await connection.send(request(topics=[topic], timeout_ms=5000, validate_only=False), 5)
        assert response.topics[0].error_code == ErrorCode.NONE, response
        await self.until(lambda: self.leader(TOPIC) == self.replicas[0])
        await asyncio.sleep(0.1)

    async def _wait(self, seconds: str) -> None:
        """wait 2.5: let time pass."""
        await asyncio.sleep(float(seconds))

    # Clients

    async def _write(self, value: str, to: str, later: str = "") -> str:
        """write m1 1 [later]: send a value to a broker under acks=all; ``later``: do not wait for the answer."""
        writing = asyncio.get_running_loop().create_task(self._produce(value, int(to)))
        self._writing[value] = writing
        return "" if later else await self._answer(value)

    async def _produce(self, value: str, broker_id: int) -> str:
        client = self._clients.get(broker_id)
        if client is None or client.connection.is_closed:
            client = self._clients[broker_id] = Client(await self.connect(broker_id, timeout_ms=60_000))
        answer = await client.produce(TOPIC, batch(value.encode()), timeout_ms=30_000)
        if answer.error is ErrorCode.NONE:
            self.acknowledged.append(value)
            return f"{value}: acknowledged at {answer.base_offset}"
        return f"{value}: {answer.error.name}"

    async def _answer(self, value: str) -> str:
        """answer m1: wait for what became of an earlier write."""
        return await self._writing[value]

    async def _delete(self, offset: str, to: str) -> str:
        """delete 3 1: DeleteRecords below an offset, asked of a broker."""
        client = Client(await self.connect(int(to)))
        error, low_watermark = await client.delete_records(TOPIC, int(offset))
        assert error is ErrorCode.NONE, error
        return f"all live replicas begin at {low_watermark} or above"

    # Faults

    async def _cut(self, *links: str) -> None:
        """cut 1->2 ...: hold what goes this way, or ``zookeeper-1``: what goes either way."""
        for link in links:
            if link.startswith("zookeeper-"):
                self.stores[int(link.removeprefix("zookeeper-"))].cut()
            else:
                self.network.cut(*_ends(link))

    async def _heal(self, *links: str) -> None:
        """heal 1->2 ...: undo ``cut``."""
        for link in links:
            if link.startswith("zookeeper-"):
                self.stores[int(link.removeprefix("zookeeper-"))].heal()
            else:
                self.network.heal(*_ends(link))

    async def _mute(self, link: str) -> None:
        """mute 1->2: connections are opened, but no frame arrives this way any more."""
        self._muted.add(_ends(link))

    async def _kill(self, broker: str) -> None:
        """kill 1"""
        await self.bury(self.kill(int(broker)))

    async def _power_loss(self, broker: str) -> None:
        """power-loss 1: it dies, and what was not synced is gone."""
        await self.bury(self.kill(int(broker), power_loss=True))

    async def _wipe(self, broker: str) -> None:
        """wipe 1: the disk of a dead broker is replaced by an empty one."""
        self.storages[int(broker)].remove_tree("/data")

    async def _restart(self, broker: str) -> None:
        """restart 1"""
        await self.start(int(broker))

    async def _sync(self, broker: str) -> None:
        """sync 1: what its log holds survives a power loss."""
        for log in self.nodes[int(broker)].logs:
            log.flush()

    async def _refuse(self, broker: str, word: str) -> None:
        """refuse 1 leader-epoch-checkpoint: its disk fails at each write to a path with that word."""
        storage = self.storages[int(broker)]
        assert isinstance(storage, RefusingStorage)
        storage.refused = word

    async def _allow(self, broker: str) -> None:
        """allow 1: its disk is well again."""
        await self._refuse(broker, "")

    def broker_failed(self, broker_id: int, error: Exception) -> None:
        """As its process does, it ends."""
        assert str(os.strerror(errno.EIO)) in str(error), error
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: loop.create_task(self._kill(str(broker_id))), context=Context())

    # What is

    def state(self) -> list[str]:
        """One line for each replica: its role, its epoch, its watermark, its ISR if it leads, its records."""
        return [self._line(broker_id) for broker_id in self.replicas]

    def _line(self, broker_id: int) -> str:
        process = self.processes.get(broker_id)
        manager = None if process is None else process.node._replicas
        replica = None if manager is None else manager.partitions.get((TOPIC, 0))
        records = " ".join(f"{value}@{epoch}" for value, epoch in self.records(broker_id))
        if replica is None:
            role = "dead" if process is None else "no role"
        elif replica.leader is not None:
            isr = ",".join(map(str, sorted(replica.leader.isr.committed)))
            role = f"leads in {replica.leader_epoch}, watermark {replica.high_watermark}, isr {isr}"
        else:
            leader = f"follows {replica.leader_id}" if replica.leader_id >= 0 else "follows nobody"
            role = f"{leader} in {replica.leader_epoch}, watermark {replica.high_watermark}"
        return f"{broker_id} {role}: {records}".rstrip()

    def records(self, broker_id: int) -> list[tuple[str, int]]:
        """(value, leader epoch) of all that a broker's log holds, in order."""
        data = self.log_bytes(broker_id, TOPIC)
        return [
            ((record.value or b"").decode(), header.leader_epoch)
            for position, header in iter_batches(data)
            for record in decode_records(data[position : position + header.size_bytes])
        ]

    def values(self, broker_id: int) -> list[str]:
        return [value for value, _ in self.records(broker_id)]

    def lost(self) -> list[str]:
        """What was acknowledged and is not in the log of the leader."""
        there = self.values(self.leader(TOPIC))
        return [value for value in self.acknowledged if value not in there]


def _ends(link: str) -> tuple[str, str]:
    source, destination = link.split("->")
    return f"b{source}", f"b{destination}"


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
        if rules is None:
            inspector.install()
        blocks = []
        for head, command in commands_of(text):
            blocks.append(f"{head}\n{SEPARATOR}\n{await transcript.do(command)}")
        assert not transcript.failures, transcript.failures
        if rules is None:
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
