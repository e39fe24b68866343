"""What befalls the cluster of a transcript: its network, its processes, its disks and ZooKeeper.

Owns these commands, and the disk that can fail. Does not own how a fault is made (``nodes.py`` and the seams).
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from cluster.metadata.paths import CONTROLLER
from cluster.metadata.store import Delete
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.storage import File
from tests.simulation.client import batch
from tests.simulation.nodes import CLIENT

if TYPE_CHECKING:
    from tests.simulation.transcript import Transcript


class RefusingStorage(MemoryStorage):
    """A disk that can fail. ``refused`` is a part of the paths that cannot be written; empty for none."""

    refused = ""

    def open(self, path: str, *, create: bool = True, keep: bool = False) -> File:
        if self.refused and self.refused in path:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return super().open(path, create=create, keep=keep)


# The network


async def cut(transcript: Transcript, *links: str) -> None:
    """cut 1->2 ...: hold what goes this way, or ``zookeeper-1``: what goes either way."""
    for link in links:
        if link.startswith("zookeeper-"):
            transcript.stores[int(link.removeprefix("zookeeper-"))].cut()
        else:
            transcript.network.cut(*_ends(link))


async def heal(transcript: Transcript, *links: str) -> None:
    """heal 1->2 ...: undo ``cut``."""
    for link in links:
        if link.startswith("zookeeper-"):
            transcript.stores[int(link.removeprefix("zookeeper-"))].heal()
        else:
            transcript.network.heal(*_ends(link))


async def mute(transcript: Transcript, link: str) -> None:
    """mute 1->2: connections are opened, but no frame arrives this way any more."""
    transcript.muted.add(_ends(link))


async def slow(transcript: Transcript, link: str, milliseconds: str) -> None:
    """slow 1->2 5000: what is sent this way from now on takes so long; another connection may overtake it."""
    transcript.slow[_ends(link)] = float(milliseconds)


def _ends(link: str) -> tuple[str, str]:
    """``1->2``, or ``1->client``: what a broker answers to clients."""
    source, destination = (end if end == CLIENT else f"b{end}" for end in link.split("->"))
    return source, destination


# Processes


async def kill(transcript: Transcript, broker: str) -> None:
    """kill 1: kill -9."""
    await transcript.bury(transcript.kill(int(broker)))


async def stop(transcript: Transcript, broker: str) -> None:
    """stop 1: a controlled shutdown."""
    await transcript.stop(int(broker))


async def restart(transcript: Transcript, broker: str) -> None:
    """restart 1: a new life on the disk that it left."""
    await transcript.start(int(broker))


async def pause(transcript: Transcript, broker: str) -> None:
    """pause 1: it stands still, what is sent to it waits at its door, and ZooKeeper's session runs on."""
    transcript.pause(int(broker))


async def resume(transcript: Transcript, broker: str) -> None:
    """resume 1: undo ``pause``."""
    transcript.resume(int(broker))


# Disks


async def power_loss(transcript: Transcript, broker: str) -> None:
    """power-loss 1: it dies, and what was not synced is gone."""
    await transcript.bury(transcript.kill(int(broker), power_loss=True))


async def wipe(transcript: Transcript, broker: str) -> None:
    """wipe 1: the disk of a dead broker is replaced by an empty one."""
    transcript.storages[int(broker)].remove_tree("/data")


async def sync(transcript: Transcript, broker: str) -> None:
    """sync 1: what its log holds survives a power loss."""
    for log in transcript.nodes[int(broker)].logs:
        log.flush()


async def refuse(transcript: Transcript, broker: str, word: str) -> None:
    """refuse 1 leader-epoch-checkpoint: its disk fails at each write to a path with that word."""
    storage = transcript.storages[int(broker)]
    assert isinstance(storage, RefusingStorage)
    storage.refused = word


async def allow(transcript: Transcript, broker: str) -> None:
    """allow 1: its disk is well again."""
    await refuse(transcript, broker, "")


async def leap(transcript: Transcript, value: str, broker: str, offset: str) -> None:
    """leap m1 1 5000000000: the first record that its compacted log still holds, all below was compacted away."""
    ((_, partition),) = transcript.nodes[int(broker)].replicas.partitions.items()
    partition.log.truncate_fully_and_start_at(int(offset))
    partition.log.log_start_offset = 0
    data = batch(value.encode(), key=b"a", base_offset=int(offset), leader_epoch=partition.leader_epoch)
    partition.log.append_as_follower(memoryview(data))


# ZooKeeper


async def depose(transcript: Transcript, broker: str) -> None:
    """depose 1: ZooKeeper lets another be the controller, and this one does not hear of it until ``hear``."""
    transcript.stores[int(broker)].deafen()
    transcript.tree.multi(0, [Delete(CONTROLLER)])


async def hear(transcript: Transcript, broker: str) -> None:
    """hear 1: what ZooKeeper has to tell it arrives."""
    transcript.stores[int(broker)].hear()


COMMANDS = {
    "cut": cut,
    "heal": heal,
    "mute": mute,
    "slow": slow,
    "kill": kill,
    "stop": stop,
    "restart": restart,
    "pause": pause,
    "resume": resume,
    "power-loss": power_loss,
    "wipe": wipe,
    "sync": sync,
    "refuse": refuse,
    "allow": allow,
    "leap": leap,
    "depose": depose,
    "hear": hear,
}
