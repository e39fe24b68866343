"""Replicas of the topics that no run creates itself: exact cases, and random logs beside the twin, some compacted."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cluster.log.compaction import LatestOffsets, compacted
from cluster.protocol.batch import parse_header
from tests.support import side_files
from tests.support.offset_bytes import offset_key, offset_value
from tests.support.stories import Batch
from tests.support.transaction_bytes import ABORT, COMMIT, TRANSACTIONAL, marker
from tests.verifier.oracle import internal as oracle
from tests.verifier.planted import PLANTED, planted_story
from tests.verifier.planted import internal as planted
from verifier import explain
from verifier.checks.internal_divergence import internal_divergence
from verifier.coordinators.internal_replicas import (
    InternalPartition,
    ReplicaBatch,
    ReplicaLog,
    ReplicaRecord,
    internal_partitions,
)
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.transactions.transaction_checks import of_internal_replicas

CASES = 1_000 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 100
TOPIC = "__consumer_offsets"
PLACE = (TOPIC, 0)
Told = tuple[str, str | None, int | None]


@pytest.mark.parametrize("name", planted.PLANTED)
def test_a_planted_run_is_found_out(tmp_path: Path, name: str) -> None:
    """From its files, as the twin does, with a sentence for each."""
    story = planted_story(name)
    directory = story.write(tmp_path / "run", sealed=False)
    found = of_internal_replicas(directory, story.model())
    wanted = PLANTED[name].expected
    assert {(each.check, each.cause): (each.topic, each.partition, each.count, each.offset) for each in found} == {
        key: (TOPIC, 0, told["count"], told["offset"]) for key, told in wanted.items()
    }
    assert told_of_twin(directory, story.model()) == told_of_check(directory, story.model())
    for each in found:
        assert explain.sentence(each).startswith(f"{TOPIC}-0: broker ")


def told_of_check(directory: RunDirectory, run: RunModel) -> list[Told]:
    found = internal_divergence(internal_partitions(directory, run))
    return sorted((each.topic, each.cause, each.offset) for each in found)


def told_of_twin(directory: RunDirectory, run: RunModel) -> list[Told]:
    return sorted((TOPIC, each.cause, each.offset) for each in oracle.find_all(directory, run))


def batch(base: int, crc: int = 0, *, epoch: int = 1, last: int | None = None, **said: Any) -> ReplicaBatch:
    given = {"size_bytes": 100, "is_sound": True, "is_whole": True} | said
    return ReplicaBatch(base, base if last is None else last, epoch, crc=crc, **given)


def record(offset: int, key: bytes = b"k", value: bytes | None = b"v", *, counts: bool = True) -> ReplicaRecord:
    return ReplicaRecord(offset, key, value, counts)


def found_in(
    judged: Sequence[ReplicaBatch],
    other: Sequence[ReplicaBatch],
    high_watermarks: tuple[int, int] = (9, 9),
    records: tuple[Sequence[ReplicaRecord] | None, Sequence[ReplicaRecord] | None] = (None, None),
    **said: Any,
) -> list[tuple[str | None, int | None]]:
    """What is found of the replica of broker 2, beside that of broker 1."""
    logs = [
        ReplicaLog(broker, batches, 0, 1, high_watermark, own)
        for broker, batches, high_watermark, own in zip((1, 2), (judged, other), high_watermarks, records, strict=True)
    ]
    partition = InternalPartition(PLACE, logs[0], logs[1:], **said)
    return [(each.cause, each.offset) for each in internal_divergence([partition])]


WHOLE = [batch(0), batch(1), batch(2)]


@pytest.mark.parametrize(
    ("other", "marks", "said", "wanted"),
    [
        (WHOLE, (9, 9), {}, []),
        (WHOLE[:2], (9, 2), {}, []),
        # one epoch wrote it: whatever is committed
        ([batch(0), batch(1, 7)], (0, 0), {}, [("different", 1)]),
        ([batch(0), batch(1, size_bytes=99)], (0, 0), {}, [("different", 1)]),
        ([batch(0), batch(1, last=3)], (0, 0), {"keeps_committed": False}, [("different", 1)]),
        # another one did, and was not cut off
        ([batch(0), batch(1, 7, epoch=0)], (9, 2), {}, [("different", 1)]),
        ([batch(0), batch(1, epoch=0)], (9, 2), {}, [("different", 1)]),
        ([batch(0), batch(1, 7, epoch=0)], (9, 1), {}, []),
        ([batch(0), batch(1, 7, epoch=0)], (1, 9), {}, []),
        ([batch(0), batch(1, 7, epoch=0)], (9, 9), {"keeps_committed": False}, []),
        ([batch(0), batch(1, 7, is_sound=False)], (9, 2), {}, [("different", 1)]),
        ([batch(0), batch(1, 7, is_sound=False)], (9, 1), {}, []),
        ([batch(0), batch(2)], (9, 3), {}, [("missing", 1)]),
        ([batch(0), batch(2)], (9, 1), {}, []),
        ([batch(0), batch(2)], (9, 3), {"keeps_committed": False}, []),
        ([batch(0), batch(2)], (9, 3), {"has_all": False}, []),
        ([*WHOLE, batch(3)], (9, 4), {}, [("extra", 3)]),
        ([*WHOLE, batch(3)], (3, 4), {}, []),
    ],
)
def test_batches_are_compared(
    other: list[ReplicaBatch], marks: tuple[int, int], said: dict[str, Any], wanted: list[tuple[str, int]]
) -> None:
    """Those of one epoch anywhere, others below both high watermarks, if no election may cut those off."""
    assert found_in(WHOLE, other, marks, **said) == wanted


def test_what_is_damaged_in_the_most_advanced_replica_accuses_no_other() -> None:
    """It makes the run unknown (``verifier.completeness.coordinators``)."""
    assert found_in([batch(0), batch(1, 7, is_sound=False), batch(2)], WHOLE) == []


@pytest.mark.parametrize(
    ("mine", "theirs", "wanted"),
    [
        ([record(1)], [record(1)], []),
        ([record(1)], [record(1, value=b"w")], [("different", 1)]),
        ([record(1)], [record(1, key=b"l")], [("different", 1)]),
        # compaction took it here, as a later one has the same key
        ([record(1), record(2)], [record(2)], []),
        ([record(1)], [record(2)], [("extra", 2)]),
        ([record(1), record(2)], [record(1)], [("missing", 2)]),
        ([record(1), record(2, counts=False)], [record(1)], []),
        ([record(1), record(2, value=None)], [record(1)], []),
        ([record(1), record(2, value=None)], [], []),
        ([record(1)], [], [("missing", 1)]),
        # not committed there yet
        ([record(1), record(5)], [record(1)], []),
        ([record(1)], [record(1), record(6)], []),
    ],
)
def test_records_are_compared_where_batches_may_differ(
    mine: list[ReplicaRecord], theirs: list[ReplicaRecord], wanted: list[tuple[str, int]]
) -> None:
    """What both have is the same, and no one lacks the newest of a key."""
    batches = [batch(0, last=4, is_whole=False)], [batch(0, 7, last=4)]
    assert found_in(*batches, (9, 5), (mine, theirs), has_all=False) == wanted
    spoiled = [batch(0, last=4, is_sound=False)]
    assert found_in(spoiled, batches[1], (9, 5), ([], theirs), has_all=False) == []
    only = [each for each in wanted if each[0] == "different"]
    assert found_in(*batches, (9, 5), (mine, theirs), has_all=False, keeps_newest=False) == only


@pytest.mark.parametrize("spoil", [lambda data: b"1" + data, lambda data: None, lambda data: data + b"x\n"])
def test_a_high_watermark_that_cannot_be_read_is_none(tmp_path: Path, spoil: Any) -> None:
    """As after a kill: then only what one epoch wrote is compared. The file itself is ``checkpoint-mismatch``."""
    story = planted_story("a replica of offsets that lacks one")
    story.side_files[planted.OTHER, "replication-offset-checkpoint"] = spoil
    directory = story.write(tmp_path / "run", sealed=False)
    assert told_of_check(directory, story.model()) == told_of_twin(directory, story.model()) == []
    killed = planted_story("a replica of offsets that lacks one")
    killed.killed = {planted.OTHER}
    directory = killed.write(tmp_path / "killed", sealed=False)
    assert told_of_check(directory, killed.model()) == told_of_twin(directory, killed.model()) == []


def write(home: Path, segments: Sequence[tuple[int, Sequence[bytes]]], high_watermark: int) -> None:
    """A broker's only replica, after a clean stop."""
    (home / f"{TOPIC}-0").mkdir(parents=True)
    for base, batches in segments:
        (home / f"{TOPIC}-0" / f"{base:020d}.log").write_bytes(b"".join(batches))
    (home / "replication-offset-checkpoint").write_bytes(side_files.offsets({PLACE: high_watermark}))
    (home / ".kafka_cleanshutdown").write_bytes(b"{}")


def drawn_log(random: Random) -> list[Batch]:
    """Offsets of three keys, and tombstones; some batches are part of a transaction, which may stay open."""
    log: list[Batch] = []
    opened: set[int] = set()
    at, epoch = 0, 1
    for _ in range(random.randrange(4, 14)):
        epoch += random.random() < 0.2
        producer = random.choice([-1, -1, 7, 8])
        if producer in opened and random.random() < 0.6:
            opened.discard(producer)
            log.append(replace(marker(at, random.choice([ABORT, COMMIT]), producer), leader_epoch=epoch))
            at += 1
            continue
        size = random.randrange(1, 4)
        keys = tuple(offset_key("g", "t", random.randrange(3)) for _ in range(size))
        values = tuple(None if random.random() < 0.1 else offset_value(random.randrange(99)) for _ in range(size))
        fields: dict[str, Any] = {"keys": keys, "raw_values": values, "leader_epoch": epoch}
        if producer >= 0:
            opened.add(producer)
            fields |= {"producer_id": producer, "base_sequence": at, "attributes": TRANSACTIONAL}
        log.append(Batch(at, (), **fields))
        at += size
    return log


def compact(log: list[Batch], random: Random, until: int) -> list[tuple[int, list[bytes]]]:
    """The segments of a replica whose broker has compacted some of what is below ``until``, by its own rules."""
    ends = [each.next_offset for each in log if each.next_offset <= until]
    to = random.choice([0, *ends])
    # a transaction without an end in what is read holds it up
    for number, each in enumerate(log):
        if each.attributes == TRANSACTIONAL and ended(log[number:], each.producer_id, to) is None:
            to = min(to, each.base_offset)
    latest, kept = LatestOffsets(99), []
    below = [each for each in log if each.next_offset <= to]
    aborted = [ended(log[log.index(each) :], each.producer_id, to) == ABORT for each in below]
    aborted = [gone and each.attributes == TRANSACTIONAL for gone, each in zip(aborted, below, strict=True)]
    for each, is_aborted in zip(below, aborted, strict=True):
        if not is_aborted:
            latest.note(each.encode(), parse_header(each.encode()))
    protected = {each.base_offset for each in below if random.random() < 0.3}
    for each, is_aborted in zip(below, aborted, strict=True):
        data = each.encode()
        kept.append(
            compacted(
                data,
                parse_header(data),
                latest,
                is_aborted=is_aborted,
                protected=protected,
                now_ms=random.randrange(9),
                delete_retention_ms=86_400_000,
            )
        )
    rest = [each.encode() for each in log if each.next_offset > to]
    return [(0, rest)] if to == 0 else [(0, kept), (to, rest)]


def ended(log: list[Batch], producer_id: int, to: int) -> int | None:
    """How the transaction ends that is open at the beginning of this part of a log."""
    markers = (each.marker for each in log if each.producer_id == producer_id and each.next_offset <= to)
    return next((kind for kind in markers if kind is not None), None)


def write_replicas(home: Path, random: Random, damage: Callable[[list[Batch]], list[Batch]]) -> RunDirectory:
    """Three brokers that stopped one after the other, each with what it had by then; one of them has damaged it."""
    log = drawn_log(random)
    for broker in (1, 2, 3):
        own = log[: random.randrange(1, len(log) + 1)]
        end = own[-1].next_offset
        mark = random.choice([end, random.randrange(end + 1)])
        whole = damage(own) if broker == 2 else own
        # a broker leaves alone what is damaged
        does_compact = random.random() < 0.6 and not any(each.spoil for each in whole)
        segments = compact(whole, random, mark) if does_compact else [(0, [each.encode() for each in whole])]
        write(home / "nodes" / str(broker) / "data", segments, mark)
    return RunDirectory(home)


def test_what_each_replica_compacts_by_itself_is_legal(tmp_path: Path) -> None:
    """Whatever of it is compacted, and wherever it ends, as the broker's own compaction leaves it."""
    run = planted_story(planted.EARLIER).model()
    for seed in range(CASES):
        directory = write_replicas(tmp_path / str(seed), Random(seed), lambda log: log)
        assert told_of_check(directory, run) == [], seed


def damaged(log: list[Batch], random: Random) -> list[Batch]:
    """A batch is gone, or of another epoch, or has another value."""
    number = random.randrange(len(log))
    each, rest = log[number], log[:number] + log[number + 1 :]
    if each.attributes & 0x20 or random.random() < 0.4:
        return rest or log
    if random.random() < 0.3:
        changed = replace(each, leader_epoch=each.leader_epoch + 5)
    elif random.random() < 0.3:
        changed = replace(each, spoil=lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    else:
        changed = replace(each, raw_values=(offset_value(1000), *each.raw_values[1:]))
    return [*log[:number], changed, *log[number + 1 :]]


def test_random_replicas_are_judged_as_the_twin_judges_them(tmp_path: Path) -> None:
    """One of three has something else, or lacks something: every cause comes up."""
    run = planted_story(planted.EARLIER).model()
    causes = set()
    for seed in range(CASES):
        random = Random(seed)
        directory = write_replicas(tmp_path / str(seed), random, lambda log, random=random: damaged(log, random))  # type: ignore[misc]
        told = told_of_check(directory, run)
        assert told == told_of_twin(directory, run), seed
        causes |= {cause for _, cause, _ in told}
    assert causes == {"different", "missing", "extra"}
