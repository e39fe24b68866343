"""Mutations of the files beside a log, and of how a log is cut into segments."""

from __future__ import annotations

from random import Random

from tests.support.stories import (
    TOPIC,
    Story,
)
from tests.verifier.mutations.model import (
    one_of,
)


@one_of(lambda story: [story])
def index_otherwise(story: Story, random: Random, target: Story) -> None:
    """Legal: indexes have entries for fewer or more batches, and there are more or fewer segments."""
    story.index_interval = random.choice([each for each in (0, 100, 300, 700) if each != story.index_interval])
    story.split_at = random.choice([0, 1, 2, 3])


@one_of(lambda story: [(broker, index) for index, place in story.partitions.items() for broker in place.replicas])
def damage_side_file(story: Story, random: Random, target: tuple[int, int]) -> None:
    """A file beside a log is gone, cut, longer, or other than it was."""
    broker, index = target
    home = f"{TOPIC}-{index}"
    log = story.partitions[index].replicas[broker]
    end = log[-1].next_offset if log else 0
    first = log[0].base_offset if log else 0
    name = random.choice([
        f"{home}/{first:020d}.index", f"{home}/{first:020d}.timeindex", f"{home}/leader-epoch-checkpoint",
        f"{home}/{end:020d}.snapshot", f"{home}/{end + 1:020d}.snapshot", "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint", "log-start-offset-checkpoint", ".kafka_cleanshutdown",
    ])  # fmt: skip
    how, where, flip = random.randrange(6), random.random(), random.randrange(1, 256)
    line = random.randrange(end + 3)

    def change(data: bytes) -> bytes | None:
        at = int(where * len(data))
        if how == 0:
            return None
        if how == 1:
            return data[:at]
        if how == 2:
            return data + bytes([flip])
        if how == 3 and name.endswith("checkpoint"):
            fields = f"{TOPIC} {index}" if "offset" in name else "1"
            return f"0\n1\n{fields} {line}\n".encode()
        return data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :] if data else b"\1"

    story.side_files[broker, name] = change
