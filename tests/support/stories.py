"""A run as a small story in memory: what producers were told, what each replica holds, what readers saw.

A story begins clean (a correct cluster's run), is mutated by a test, and is written as a real run directory: segments
made by ``tests.support.batches``, histories by the real ``HistoryWriter``, ``run.json`` by the real model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support import side_files
from tests.support.batches import BatchFields, Record, encode_batch
from tests.support.closed import TOPIC_ID, closed, declared, partition_metadata, shaped, write_series
from tests.support.settings import experiment_of, load_settings_of, run_model, settings, topic_config_of
from verifier.evidence import seal
from verifier.evidence.declared import DeclaredEvidence
from verifier.evidence.history import HistoryRow, HistoryWriter, Phase
from verifier.evidence.output import OUTPUT_TOPIC
from verifier.evidence.run_directory import RunDirectory, append_json_line, write_json_atomic
from verifier.evidence.run_model import ChildProcess, FinalPartition, PhaseSpan, RunModel, RunSettings, TopicSpec
from verifier.evidence.sequenced_value import FLAG_SENTINEL, encode

TOPIC = "t"
RUN_ID = 77
SENTINEL_STREAM = 2**31
SECOND = 1_000_000_000
#: When every batch was made, unless a test says otherwise: 20 s into the run.
MADE_MS = 1_700_000_000_000
#: When the run began by the wall clock; its monotonic clock begins at 0.
STARTED_MS = MADE_MS - 20_000
#: Every id that the cluster handed out is below.
PRODUCER_IDS_BELOW = 10_000


@dataclass(frozen=True)
class Batch:
    """One batch on disk. ``values`` are (stream, sequence); ``spoil`` changes its bytes after they were made."""

    base_offset: int
    values: tuple[tuple[int, int], ...]
    leader_epoch: int = 1
    producer_id: int = -1
    producer_epoch: int = 0
    base_sequence: int = -1
    codec: str = "none"
    sentinel: bool = False
    spoil: Callable[[bytes], bytes] | None = None
    raw_values: tuple[bytes, ...] = ()
    timestamp_ms: int = MADE_MS
    attributes: int = 0
    keys: tuple[bytes, ...] = ()  # of the raw values, if they have any

    @property
    def marker(self) -> int | None:
        """1 for COMMIT, 0 for ABORT; None for a batch that ends no transaction."""
        return self.keys[0][3] if self.attributes & 0x20 and self.keys else None

    @property
    def next_offset(self) -> int:
        return self.base_offset + max(len(self.values), len(self.raw_values))

    def encode(self, value_bytes: int = 64, sent_ns: tuple[int, ...] = ()) -> bytes:
        """The bytes of this batch. ``sent_ns``: when each of its values was sent."""
        return _encoded(self, value_bytes, sent_ns or (1,) * len(self.values))


@lru_cache(maxsize=1 << 12)
def _encoded(batch: Batch, value_bytes: int, sent_ns: tuple[int, ...]) -> bytes:
    """Each replica has it, its index asks for its length, and most stories begin with the same batches."""
    flags = FLAG_SENTINEL if batch.sentinel else 0
    plain = batch.raw_values or tuple(
        encode(RUN_ID, stream, sequence, at_ns, size_bytes=value_bytes, flags=flags)
        for (stream, sequence), at_ns in zip(batch.values, sent_ns, strict=True)
    )
    fields = BatchFields(
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        codec=batch.codec,
        attributes=batch.attributes,
        base_timestamp=batch.timestamp_ms,
    )
    keys = batch.keys or (None,) * len(plain)
    data = encode_batch([Record(value, key) for key, value in zip(keys, plain, strict=True)], fields)
    return batch.spoil(data) if batch.spoil else data


@lru_cache(maxsize=1 << 12)
def _history(process: str, rows: tuple[HistoryRow, ...], torn: bool) -> bytes:
    """The bytes of a history, as its writer leaves them: most stories share most of theirs."""
    with TemporaryDirectory() as home:
        path = Path(home) / "history"
        writer = HistoryWriter(path, process, _StoppedClock())
        for row in rows:
            writer.append(row)
        writer.flush()
        if not torn:
            writer.close()
        return path.read_bytes()


@dataclass
class Partition:
    """One partition: the batches of every replica, and its final state."""

    replicas: dict[int, list[Batch]]
    leader: int
    high_watermark: int
    log_end_offsets: dict[int, int]
    sentinel_offset: int
    log_start_offset: int = 0
    status: str = "ok"
    leader_epoch: int = 1
    tails: dict[int, bytes] = field(default_factory=dict)


@dataclass
class Story:
    """A whole run. ``rows`` are the histories, by process; each is closed in order unless it is in ``torn``."""

    partitions: dict[int, Partition]
    rows: dict[str, list[HistoryRow]]
    settings: RunSettings = field(default_factory=settings)
    torn: set[str] = field(default_factory=set)
    faults: list[dict[str, Any]] = field(default_factory=list)
    faults_requested: list[str] = field(default_factory=list)
    journals: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    topic_config: dict[str, str] = field(default_factory=dict)
    streams: tuple[int, ...] = ()
    kind: str = "streams"  # of the workload
    leaders: list[dict[str, Any]] = field(default_factory=list)
    split_at: int = 0  # a new segment after so many batches; 0: one segment
    index_interval: int = 4096
    sent_ns: dict[tuple[int, int], int] = field(default_factory=dict)  # when a value was sent, if not as told
    renamed: dict[int, int] = field(
        default_factory=dict
    )  # the offset at which a segment begins -> the one that names it
    killed: set[int] = field(default_factory=set)  # brokers without the mark of a clean stop, besides those with a tail
    stopped: set[int] = field(default_factory=set)  # brokers that stopped cleanly even with a tail
    clients: dict[str, str] = field(default_factory=dict)  # of processes, if not the usual ones
    exits: dict[int, int] = field(default_factory=dict)  # how a broker's process ended, if the run noted it
    phases: list[PhaseSpan] = field(default_factory=list)  # none: those of a run that went as it should
    producer_ids_below: int | None = PRODUCER_IDS_BELOW
    #: how far the wall clock had moved since the run's start, in ms, at each sample of it; none: no samples
    clock_ms: list[int] = field(default_factory=list)
    #: partition of ``__transaction_state`` -> its batches, the same on all brokers
    transaction_state: dict[int, list[Batch]] = field(default_factory=dict)
    #: the same of ``__consumer_offsets``
    consumer_offsets: dict[int, list[Batch]] = field(default_factory=dict)
    #: the log of partition 0 of the topic that a group writes to, the same on all brokers; none: there is no such topic
    output: list[Batch] = field(default_factory=list)
    #: (broker, ``<topic>-<partition>`` of one of these topics) -> its batches, if it has others than the rest
    internal_replicas: dict[tuple[int, str], list[Batch]] = field(default_factory=dict)
    #: (broker, path below its data directory) -> what becomes of the file's bytes, None if there is none
    side_files: dict[tuple[int, str], Callable[[bytes], bytes | None]] = field(default_factory=dict)

    def leader_log(self, partition: int) -> list[Batch]:
        """The batches of the final leader: the very list, to be mutated."""
        place = self.partitions[partition]
        return place.replicas[place.leader]

    def everywhere(self, partition: int, change: Callable[[list[Batch]], None]) -> None:
        """The same change on every replica of a partition."""
        for batches in self.partitions[partition].replicas.values():
            change(batches)

    def model(self) -> RunModel:
        """``run.json``."""
        final = [
            FinalPartition(
                TOPIC, index, place.leader, place.leader_epoch, place.high_watermark, place.log_start_offset,
                dict(place.log_end_offsets), place.sentinel_offset, place.status,
            )
            for index, place in self.partitions.items()
        ]  # fmt: skip
        brokers = len(next(iter(self.partitions.values())).log_end_offsets)
        whole = closed(self.evidence())
        asked = replace(shaped(self.settings, self.evidence()), rate=0.0)
        config = topic_config_of(asked, self.topic_config)
        children = [self._ended(child) for child in whole["children"]]
        experiment = experiment_of(asked, config, self.faults_requested)
        experiment["resolved"]["workload"]["kind"] = self.kind
        return run_model(
            name="story",
            seed=1,
            run_id=RUN_ID,
            started="2023-11-14T22:13:00Z",
            ended="2023-11-14T22:14:00Z",
            settings=asked,
            experiment=experiment,
            topics=[TopicSpec(TOPIC, len(self.partitions), brokers, TOPIC_ID, config)],
            producer_ids_below=self.producer_ids_below,
            faults_requested=self.faults_requested,
            final=final,
            final_topic_ids={TOPIC: TOPIC_ID},
            repro="gapless run --seed 1",
            **{**whole, "children": children, **({"phases": self.phases} if self.phases else {})},
        )

    @property
    def brokers(self) -> list[int]:
        """The brokers that hold anything."""
        return sorted({broker for place in self.partitions.values() for broker in place.replicas})

    def is_marked(self, broker: int) -> bool:
        """Whether a broker left the mark of a clean stop."""
        tails = any(place.tails.get(broker) for place in self.partitions.values())
        return broker in self.stopped or not (tails or broker in self.killed)

    def _ended(self, child: ChildProcess) -> ChildProcess:
        """How a process ended: a broker as it was said to have, else in order if it is marked."""
        name, _, number = child.name.rpartition("-")
        if name != "broker":
            return child
        return replace(child, exit_code=self.exits.get(int(number), 0 if self.is_marked(int(number)) else None))

    def evidence(self) -> DeclaredEvidence:
        """What the run declared before its load began."""
        replicas = {f"{TOPIC}-{index}": place.log_end_offsets for index, place in self.partitions.items()}
        planned = len({entry.get("number", -1) for entry in self.faults})
        return declared(self.rows, replicas, self.streams, planned, self.clients)

    def delete_below(self, partition: int, offset: int) -> None:
        """The run has records below this offset deleted (DeleteRecords)."""
        request = HistoryRow("delete", "ok", TOPIC, partition, first_offset=offset, last_offset=offset)
        self.rows["producer-1"].append(request)

    def begins_at(self, partition: int, offset: int, broker: int = 1) -> None:
        """A broker's journal says that its log begins there."""
        entry = {"event": "log-start", "before": 0, "log_start_offset": offset, "log_end_offset": 0}
        entry |= {"reason": "asked for", "topic": TOPIC, "partition": partition}
        self.journals.setdefault(broker, []).append(entry)

    def write(self, path: Path, *, sealed: bool = True) -> RunDirectory:
        """Make the run directory. ``sealed``: whether with its seal, which takes reading all of it again."""
        directory, model = RunDirectory(path), self.model()
        path.mkdir(parents=True, exist_ok=True)
        directory.prepare()
        write_json_atomic(directory.run_json, model.to_json())
        directory.faults_jsonl.write_text("".join(json.dumps(entry) + "\n" for entry in self.faults), encoding="utf-8")
        looks = [*first_looks(set(self.partitions) - {each["partition"] for each in self.leaders}), *self.leaders]
        directory.leaders_jsonl.write_text("".join(json.dumps(each) + "\n" for each in looks), encoding="utf-8")
        for process, rows in self.rows.items():
            told = tuple(row if self.settings.idempotence else row._replace(producer_id=-1) for row in rows)
            directory.history(process).write_bytes(_history(process, told, process in self.torn))
        for broker, entries in self.journals.items():
            directory.node(broker).mkdir(parents=True, exist_ok=True)
            for entry in entries:
                append_json_line(directory.control_jsonl(broker), entry)
        for index, place in self.partitions.items():
            for broker, batches in place.replicas.items():
                home = directory.node(broker) / "data" / f"{TOPIC}-{index}"
                home.mkdir(parents=True)
                (home / "partition.metadata").write_text(partition_metadata(), encoding="utf-8")
                for base_offset, data in self._segments(batches, place.tails.get(broker, b"")):
                    (home / f"{base_offset:020d}.log").write_bytes(data)
        for broker in self.brokers:
            for (topic, index), batches in self._internal(broker).items():
                home = directory.node(broker) / "data" / f"{topic}-{index}"
                home.mkdir()
                first = batches[0].base_offset if batches else 0
                (home / f"{first:020d}.log").write_bytes(b"".join(batch.encode() for batch in batches))
            self._write_side_files(directory.node(broker) / "data", broker)
        write_series(directory, self.evidence())
        for number, moved_ms in enumerate(self.clock_ms):
            sample = {"time_ns": number * 10 * SECOND, "wall_minus_monotonic_ms": STARTED_MS + moved_ms}
            append_json_line(directory.resources_jsonl, sample | {"free_bytes": 10**10, "rss_bytes": {}})
        write_json_atomic(directory.load_settings_json, load_settings_of(model.settings, RUN_ID, TOPIC))
        if sealed:
            seal.take(directory)
        return directory

    def _internal(self, broker: int) -> dict[tuple[str, int], list[Batch]]:
        """A broker's replicas of the coordinators' topics, and of the one that a group writes to."""
        topics = {
            "__transaction_state": self.transaction_state,
            "__consumer_offsets": self.consumer_offsets,
            OUTPUT_TOPIC: {0: self.output} if self.output else {},
        }
        return {
            (topic, index): self.internal_replicas.get((broker, f"{topic}-{index}"), batches)
            for topic, partitions in topics.items()
            for index, batches in partitions.items()
        }

    def _write_side_files(self, data: Path, broker: int) -> None:
        """Everything beside the logs of one broker, as it is after a clean stop, then what the test makes of it."""
        files: dict[str, bytes] = {}
        marks: dict[str, dict[tuple[str, int], int]] = {
            name: {} for name in ("recovery-point", "replication", "log-start")
        }
        for index, place in self.partitions.items():
            if broker not in place.replicas:
                continue
            batches, home = place.replicas[broker], f"{TOPIC}-{index}"
            parts = self._parts(batches)
            first, end = (batches[0].base_offset, batches[-1].next_offset) if batches else (0, 0)
            start = max(first, place.log_start_offset)
            for part in parts:
                base = self._name(part)
                sized = [(batch, len(batch.encode())) for batch in part]
                files[f"{home}/{base:020d}.index"], files[f"{home}/{base:020d}.timeindex"] = side_files.indexes(
                    base, sized, self.index_interval
                )
                if aborted := side_files.aborted(batches, part):
                    files[f"{home}/{base:020d}.txnindex"] = aborted
            for offset in {end, *(part[0].base_offset for part in parts[1:])}:
                if 0 < offset <= end:
                    files[f"{home}/{offset:020d}.snapshot"] = side_files.snapshot(offset, batches)
            files[f"{home}/leader-epoch-checkpoint"] = side_files.leader_epochs(batches, start, 1)
            marks["recovery-point"][TOPIC, index] = end
            marks["replication"][TOPIC, index] = min(place.high_watermark, end)
            if place.log_start_offset > self._name(parts[0]):
                marks["log-start"][TOPIC, index] = place.log_start_offset
        for internal, batches in self._internal(broker).items():
            marks["replication"][internal] = batches[-1].next_offset if batches else 0
        files |= {f"{name}-offset-checkpoint": side_files.offsets(rows) for name, rows in marks.items()}
        if self.is_marked(broker):
            files[".kafka_cleanshutdown"] = b'{"version":0,"brokerEpoch":-1}'
        for name, change in [(name, change) for (whose, name), change in self.side_files.items() if whose == broker]:
            changed = change(files.pop(name, b""))
            if changed is not None:
                files[name] = changed
        for name, content in files.items():
            (data / name).write_bytes(content)

    def _parts(self, batches: list[Batch]) -> list[list[Batch]]:
        """The batches of each segment; one, empty, of an empty log."""
        step = self.split_at or max(len(batches), 1)
        return [batches[index : index + step] for index in range(0, len(batches), step)] or [[]]

    def _sent(self, value: tuple[int, int]) -> int:
        """When a value was sent: with the row that tells it, or when that of the values before it was."""
        if value in self.sent_ns:
            return self.sent_ns[value]
        stream, sequence = value
        told = [
            (each.first_sequence, max(0, each.invoke_ns))
            for rows in self.rows.values()
            for each in rows
            if each.f in ("send", "sentinel") and each.stream == stream and 0 <= each.first_sequence <= sequence
        ]
        return max(told, default=(0, 0))[1]

    def _name(self, part: list[Batch]) -> int:
        """The offset that names a segment: its first one, unless the test says otherwise."""
        base_offset = part[0].base_offset if part else 0
        return self.renamed.get(base_offset, base_offset)

    def _segments(self, batches: list[Batch], tail: bytes) -> Iterator[tuple[int, bytes]]:
        parts = self._parts(batches)
        for number, part in enumerate(parts):
            data = b"".join(batch.encode(sent_ns=tuple(map(self._sent, batch.values))) for batch in part)
            yield self._name(part), data + (tail if number == len(parts) - 1 else b"")


def first_looks(partitions: Iterable[int]) -> list[dict[str, Any]]:
    """What the conductor always notes of each partition, without who led: no fault counts for it."""
    look = {"topic": TOPIC, "time_ns": 0, "before_ns": None, "leader": None, "leader_epoch": 1, "isr": []}
    return [{**look, "partition": partition} for partition in sorted(partitions)]


class _StoppedClock:
    def monotonic_ns(self) -> int:
        return 0


def clean(
    partitions: int = 1,
    streams: int = 2,
    batches: int = 4,
    size: int = 3,
    brokers: int = 3,
    final_readers: int = 1,
    codec: str = "none",
) -> Story:
    """A run in which nothing went wrong. Stream ``s`` writes to partition ``s % partitions``.

    Each stream sends ``batches`` batches of ``size`` values, interleaved with the other streams of its partition;
    then comes the sentinel. Every value is acknowledged with its offset and read by all readers.
    """
    rows: dict[str, list[HistoryRow]] = {"producer-1": [], "reader-1": [], "sentinel": []}
    rows |= {f"final-{number}": [] for number in range(1, final_readers + 1)}
    story = Story({}, rows, streams=tuple(range(1, streams + 1)))
    for index in range(partitions):
        log: list[Batch] = []
        mine = [stream for stream in range(1, streams + 1) if stream % partitions == index]
        for stream in mine:
            rows["producer-1"].append(_row("reserve", "invoke", index, stream, 0, batches * size - 1, -1))
        for number in range(batches):
            for stream in mine:
                first = number * size
                base = log[-1].next_offset if log else 0
                values = tuple((stream, first + step) for step in range(size))
                log.append(Batch(base, values, producer_id=1000 + stream, base_sequence=first, codec=codec))
                rows["producer-1"].append(_row("send", "ok", index, stream, first, first + size - 1, base))
                polled = _row("poll", "ok", index, stream, first, first + size - 1, base)
                rows["reader-1"].append(polled._replace(high_watermark=base + size))
        sentinel = log[-1].next_offset if log else 0
        log.append(Batch(sentinel, ((SENTINEL_STREAM, index),), producer_id=2000, base_sequence=0, sentinel=True))
        rows["sentinel"].append(_row("reserve", "invoke", index, SENTINEL_STREAM, index, index, -1, phase="final"))
        # it is sent when all is acknowledged
        last_ns = (10 + batches * size) * SECOND // 10
        placed = _row("sentinel", "ok", index, SENTINEL_STREAM, index, index, sentinel, phase="final")
        rows["sentinel"].append(placed._replace(invoke_ns=last_ns - SECOND // 100, complete_ns=last_ns))
        for number in range(1, final_readers + 1):
            rows[f"final-{number}"] += final_polls(index, log)
        end = log[-1].next_offset
        ids = range(1, brokers + 1)
        story.partitions[index] = Partition(
            {broker: list(log) for broker in ids}, 1 + index % brokers, end, dict.fromkeys(ids, end), sentinel
        )
    for process in rows:
        if process.startswith(("reader", "final")):
            rows[process] = _in_one_session(rows[process], range(partitions))
    return story


def _in_one_session(polls: list[HistoryRow], partitions: Iterable[int]) -> list[HistoryRow]:
    """The rows of a reader that begins at offset 0; what one poll of the final phase brings is a batch."""
    if not polls:
        return []
    phase = polls[0].phase
    rows = [assigned(number, phase) for number in partitions]
    op = 0
    for each in polls:
        op += each.op != 0
        rows.append(each._replace(op=op))
    return rows


def assigned(partition: int, phase: Phase) -> HistoryRow:
    """A reader's only session begins at offset 0."""
    return HistoryRow("assign", "ok", TOPIC, partition, first_offset=0, last_offset=0, op=0, phase=phase, session=1)


def final_polls(partition: int, log: list[Batch]) -> list[HistoryRow]:
    """What a final reader is handed from this log: one row per value; ``op`` is 0 but for a batch's first."""
    rows = []
    for batch in log:
        for run_offset, (stream, sequence) in enumerate(batch.values):
            offset = batch.base_offset + run_offset
            polled = _row("poll", "ok", partition, stream, sequence, sequence, offset, phase="final")
            polled = polled._replace(high_watermark=log[-1].next_offset)
            rows.append(polled if run_offset == 0 else polled._replace(op=0))
    return rows


def _row(
    f: Any, outcome: Any, partition: int, stream: int, first: int, last: int, offset: int, phase: Any = "load"
) -> HistoryRow:
    last_offset = offset + last - first if offset >= 0 else -1
    done = (10 + first) * SECOND // 10
    if f == "poll" and phase == "final":
        # when the load is over, and the sentinels are placed
        done += 100 * SECOND
    producer_id = 2000 if stream == SENTINEL_STREAM else 1000 + stream
    return HistoryRow(
        f, outcome, TOPIC, partition, stream, first, last, offset, last_offset, done - SECOND // 100, done,
        producer_id=producer_id, producer_epoch=0, incarnation=1, phase=phase, session=1,
    )  # fmt: skip


row = _row
