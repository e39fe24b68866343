"""Planted examples for the anomalies of files beside the log, each with its nearest legal neighbor."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.support import side_files
from tests.support.stories import MADE_MS, TOPIC, Batch, Story
from tests.verifier.planted.headers import both
from tests.verifier.planted.model import Planted

HOME = f"{TOPIC}-0"
SEGMENT = f"{HOME}/{0:020d}"
INDEX, TIME_INDEX, EPOCHS = f"{SEGMENT}.index", f"{SEGMENT}.timeindex", f"{HOME}/leader-epoch-checkpoint"
SNAPSHOT = f"{HOME}/{25:020d}.snapshot"
RECOVERY_POINT, HIGH_WATERMARK, LOG_START = (
    f"{name}-offset-checkpoint" for name in ("recovery-point", "replication", "log-start")
)
CLEAN = ".kafka_cleanshutdown"
#: The story's leader, and one of its followers.
LEADER, FOLLOWER = 1, 3


def changed(name: str, change: Callable[[bytes], bytes | None], broker: int = FOLLOWER) -> Callable[[Story], None]:
    """One broker has another file of this name; None: none."""

    def plant(story: Story) -> None:
        story.side_files[broker, name] = change

    return plant


def absent(name: str, broker: int = FOLLOWER) -> Callable[[Story], None]:
    return changed(name, lambda data: None, broker)


def holds(name: str, data: bytes, broker: int = FOLLOWER) -> Callable[[Story], None]:
    return changed(name, lambda before: data, broker)


def killed(story: Story) -> None:
    """The follower did not stop cleanly."""
    story.killed.add(FOLLOWER)


def ended(code: int) -> Callable[[Story], None]:
    """The run noted how the follower's process ended."""

    def plant(story: Story) -> None:
        story.exits[FOLLOWER] = code

    return plant


def indexed(story: Story) -> None:
    """Every batch is newer than the one before, and most have entries."""
    story.index_interval = 200

    def change(batches: list[Batch]) -> None:
        batches[:] = [replace(batch, timestamp_ms=MADE_MS + number) for number, batch in enumerate(batches)]

    story.everywhere(0, change)


def patched(name: str, at: int, data: bytes, broker: int = FOLLOWER) -> Callable[[Story], None]:
    """A file, of a story with full indexes, with these bytes from ``at`` on."""
    return both(indexed, changed(name, lambda before: before[:at] + data + before[at + len(data) :], broker))


def told(topic_partition_offset: int) -> bytes:
    return side_files.offsets({(TOPIC, 0): topic_partition_offset})


def many_segments(story: Story) -> None:
    indexed(story)
    story.split_at = 3


def with_tail(story: Story) -> None:
    """Half a batch behind everything, on a follower."""
    story.partitions[0].tails[FOLLOWER] = Batch(25, ((77, 0),)).encode()[:70]


def stopped(story: Story) -> None:
    story.stopped.add(FOLLOWER)


def producers(change: Callable[[list[tuple[int, ...]]], list[tuple[int, ...]]]) -> Callable[[Story], None]:
    """The follower's snapshot has other producers."""

    def edit(data: bytes) -> bytes:
        rows = [struct.unpack_from(">qhiqiq", data, at) for at in range(10, len(data), 46)]
        return side_files.snapshot_of(change(rows))  # type: ignore[arg-type]

    return changed(SNAPSHOT, edit)


def trimmed(story: Story) -> None:
    """The first two batches are deleted, for their time had come."""
    story.partitions[0].log_start_offset = 6
    story.delete_below(0, 6)
    story.begins_at(0, 6)
    story.everywhere(0, lambda batches: batches.__delitem__(slice(0, 2)))


def deleted_below_4(story: Story) -> None:
    """A client had records below 4 deleted, in the middle of a batch."""
    story.partitions[0].log_start_offset = 4
    story.delete_below(0, 4)
    story.begins_at(0, 4)


def expired(story: Story) -> None:
    """Producers are forgotten after a second, and the run went on long after the last of these wrote."""
    story.settings = replace(story.settings, producer_id_expiration_ms=1000)


def made_old(story: Story) -> None:
    """Producers are forgotten 100 s later. The last of these wrote 95 s before the latest end, by a steady clock.

    This one was set forward for a while.
    """
    story.settings = replace(story.settings, producer_id_expiration_ms=100_000)
    story.clock_ms = [0, 50_000, 0]


def stranger(last_offset: int) -> Callable[[Story], None]:
    return producers(lambda rows: [*rows, (4000, 0, 8, last_offset, 0, MADE_MS)])


#: The story's first batch.
FIRST = Batch(0, ((1, 0), (1, 1), (1, 2)), producer_id=1001, base_sequence=0)


def one(check: str, cause: str | None, **shown: Any) -> dict[tuple[str, str | None], dict[str, Any]]:
    return {(check, cause): {"count": 1, **shown}}


def index(cause: str, **shown: Any) -> dict[tuple[str, str | None], dict[str, Any]]:
    return one("index-mismatch", cause, **shown)


def checkpoint(cause: str, **shown: Any) -> dict[tuple[str, str | None], dict[str, Any]]:
    return one("checkpoint-mismatch", cause, **shown)


def snapshot(cause: str, **shown: Any) -> dict[tuple[str, str | None], dict[str, Any]]:
    return one("snapshot-mismatch", cause, **{"offset": 25, **shown})


PLANTED: Mapping[str, Planted] = {
    "indexes with many entries": Planted(indexed),
    "many segments": Planted(many_segments),
    "an index that is cut within an entry": Planted(
        both(indexed, changed(INDEX, lambda data: data + b"\1\2")),
        index("size", offset=None),
        neighbor="an index with room at its end",
    ),
    "an index with room at its end": Planted(both(indexed, changed(INDEX, lambda data: data + bytes(800)))),
    "an index entry beyond its file": Planted(
        both(indexed, changed(INDEX, lambda data: data[:-4] + struct.pack(">i", 90_000))),
        index("outside", offset=24),
        neighbor="an index with fewer entries",
    ),
    "an index with fewer entries": Planted(both(indexed, changed(INDEX, lambda data: data[:8]))),
    "an index entry where no batch begins": Planted(
        patched(INDEX, 4, struct.pack(">i", 1)), index("batch", offset=5), neighbor="indexes with many entries"
    ),
    "an index entry of another batch": Planted(
        patched(INDEX, 0, struct.pack(">i", 4)), index("batch", offset=4), neighbor="indexes with many entries"
    ),
    "an index that does not ascend": Planted(
        both(indexed, changed(INDEX, lambda data: data[:16] + data[:8])),
        index("order", offset=5),
        neighbor="an index with fewer entries",
    ),
    "the index of a killed broker's last segment": Planted(both(killed, patched(INDEX, 4, struct.pack(">i", 1)))),
    "the index of a killed broker's closed segment": Planted(
        both(many_segments, killed, holds(INDEX, struct.pack(">ii", 5, 1))),
        index("batch", offset=5),
        neighbor="the index of a killed broker's last segment",
    ),
    "a time entry beyond its segment": Planted(
        both(indexed, changed(TIME_INDEX, lambda data: data[:-4] + struct.pack(">i", 900))),
        index("outside", offset=900),
        neighbor="indexes with many entries",
    ),
    "a time entry of another time": Planted(
        patched(TIME_INDEX, 0, struct.pack(">q", 5)),
        index("timestamp", offset=5),
        neighbor="indexes with many entries",
    ),
    "a time index without its last entry": Planted(
        both(indexed, changed(TIME_INDEX, lambda data: data[:-12])),
        index("newest", offset=None),
        neighbor="a killed broker's time index without its last entry",
    ),
    "a killed broker's time index without its last entry": Planted(
        both(indexed, killed, changed(TIME_INDEX, lambda data: data[:-12]))
    ),
    "no index": Planted(absent(INDEX), index("missing", offset=None), neighbor="no index after a kill"),
    "no index after a kill": Planted(both(killed, absent(INDEX))),
    "a checkpoint that is no checkpoint": Planted(
        both(killed, holds(EPOCHS, b"0\n2\n1 0\n")),
        checkpoint("unreadable"),
        neighbor="no offset checkpoints after a kill",
    ),
    "a broker's checkpoint that is no checkpoint": Planted(
        holds(HIGH_WATERMARK, b"1\n0\n"), checkpoint("unreadable"), neighbor="no offset checkpoints after a kill"
    ),
    "no leader-epoch-checkpoint": Planted(
        both(killed, absent(EPOCHS)), checkpoint("missing"), neighbor="no offset checkpoints after a kill"
    ),
    "no recovery points": Planted(
        absent(RECOVERY_POINT), checkpoint("missing"), neighbor="no offset checkpoints after a kill"
    ),
    "no offset checkpoints after a kill": Planted(
        both(killed, absent(RECOVERY_POINT), absent(HIGH_WATERMARK), absent(LOG_START))
    ),
    "an epoch that begins elsewhere": Planted(
        holds(EPOCHS, b"0\n2\n0 0\n1 3\n"), checkpoint("epochs", offset=0), neighbor="an epoch without any batch"
    ),
    "an epoch without any batch": Planted(holds(EPOCHS, b"0\n2\n1 0\n4 25\n")),
    "an epoch beyond the end": Planted(
        holds(EPOCHS, b"0\n2\n1 0\n4 26\n"),
        checkpoint("epochs", offset=26),
        neighbor="an epoch beyond the end after a kill",
    ),
    "an epoch beyond the end after a kill": Planted(both(killed, holds(EPOCHS, b"0\n2\n1 0\n4 26\n"))),
    "epochs that begin behind the log's beginning": Planted(
        holds(EPOCHS, b"0\n1\n1 3\n"),
        checkpoint("epochs", offset=0),
        neighbor="epochs that begin behind the log's beginning after a kill",
    ),
    "epochs that begin behind the log's beginning after a kill": Planted(both(killed, holds(EPOCHS, b"0\n1\n1 3\n"))),
    "a recovery point below the end": Planted(
        holds(RECOVERY_POINT, told(24)),
        checkpoint("recovery-point"),
        neighbor="a recovery point that lags after a kill",
    ),
    "a recovery point that lags after a kill": Planted(both(killed, holds(RECOVERY_POINT, told(3)))),
    "a high watermark beyond the end": Planted(
        holds(HIGH_WATERMARK, told(26)), checkpoint("high-watermark"), neighbor="a follower's high watermark that lags"
    ),
    "a leader's high watermark that lags": Planted(
        changed(HIGH_WATERMARK, lambda data: told(24), broker=LEADER),
        checkpoint("high-watermark"),
        neighbor="a follower's high watermark that lags",
    ),
    "a follower's high watermark that lags": Planted(holds(HIGH_WATERMARK, told(3))),
    "a high watermark beyond the end after a kill": Planted(both(killed, holds(HIGH_WATERMARK, told(26)))),
    "a log start that nobody saw": Planted(
        changed(LOG_START, lambda data: told(3), broker=LEADER),
        checkpoint("log-start"),
        neighbor="a log start that was told",
    ),
    "a log start beyond the end": Planted(
        holds(LOG_START, told(26)),
        {("checkpoint-mismatch", "log-start"): {"count": 1}},
        neighbor="a log start that was told",
    ),
    "a log start that was told": Planted(deleted_below_4),
    "no mark of a clean stop": Planted(
        both(ended(0), absent(CLEAN)), checkpoint("marker"), neighbor="no mark of a stop after a kill"
    ),
    "no mark of a stop after a kill": Planted(both(ended(-9), absent(CLEAN))),
    "a snapshot that is no snapshot": Planted(
        changed(SNAPSHOT, lambda data: data[:-1] + b"\7"), snapshot("unreadable"), neighbor="many segments"
    ),
    "a snapshot with another sequence": Planted(
        producers(lambda rows: [(*rows[0][:2], rows[0][2] + 1, *rows[0][3:]), *rows[1:]]),
        snapshot("entry"),
        neighbor="many segments",
    ),
    "a snapshot without a producer": Planted(
        producers(lambda rows: rows[1:]), snapshot("lacks"), neighbor="a snapshot without an expired producer"
    ),
    "a snapshot without a producer that a clock made old": Planted(both(made_old, producers(lambda rows: rows[1:]))),
    "a snapshot without an expired producer": Planted(both(expired, producers(lambda rows: rows[1:]))),
    "a snapshot with a strange producer": Planted(
        stranger(3), snapshot("stranger"), neighbor="a snapshot with a producer of deleted batches"
    ),
    "a snapshot with a producer of deleted batches": Planted(both(trimmed, stranger(3))),
    "a snapshot beyond the end": Planted(
        holds(f"{HOME}/{26:020d}.snapshot", side_files.snapshot_of([])),
        snapshot("beyond", offset=26),
        neighbor="a snapshot in the middle",
    ),
    "a snapshot in the middle": Planted(holds(f"{HOME}/{3:020d}.snapshot", side_files.snapshot(3, [FIRST]))),
    "no snapshot": Planted(absent(SNAPSHOT), snapshot("missing"), neighbor="no snapshot after a kill"),
    "no snapshot after a kill": Planted(both(killed, absent(SNAPSHOT))),
    "a torn tail after a clean stop": Planted(
        both(with_tail, stopped), one("torn-tail", None, offset=25), neighbor="a torn tail after a kill"
    ),
    "a torn tail after a kill": Planted(both(with_tail, killed)),
}
