"""``gapless dump``: every file of a log as text and as JSON, and every kind of damage named with its place."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from chaos.commands.main import run_command
from cluster.log import checkpoints
from cluster.log.clean_state import LogState, SegmentRecord, clean_state_text
from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.log.producer_snapshot import snapshot_bytes
from cluster.log.sequence import BatchMetadata, ProducerEntry
from cluster.log.snapshots import histories_bytes
from cluster.protocol.batch import parse_header
from cluster.protocol.records import NewRecord, build_batch
from cluster.seams.clock import ManualClock
from cluster.seams.os_storage import OsStorage
from tests.cluster.protocol.vectors import ABORT_MARKER, COMMIT_MARKER, TRANSACTIONAL
from verifier.evidence.sequenced_value import encode

NAME = "00000000000000000000"
NOW_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dump(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run_command(["dump", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def objects(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_segment_with_records(capsys):
    """Batches with all of their header, and below them keys, values and headers as text or hex, markers decoded."""
    ours = encode(run_id=1, stream_id=9, sequence=41, send_time_ns=5, size_bytes=60)
    mine = build_batch([NewRecord(7, b"\x00\xff", ours), NewRecord(8, None, None)], base_offset=2, leader_epoch=3)
    Path(f"{NAME}.log").write_bytes(TRANSACTIONAL + mine + COMMIT_MARKER + ABORT_MARKER)
    assert dump(capsys, f"{NAME}.log", "--records") == (0, SEGMENT, "")


SEGMENT = """\
position=0  base_offset=0  last_offset=1  count=2  leader_epoch=-1  producer_id=1000  producer_epoch=5  \
base_sequence=7  codec=none  timestamp_type=CreateTime  max_timestamp=1700000000001  size_bytes=87  crc_ok=true  \
transactional=true
  offset=0  timestamp=1700000000000  key=k  value=v1
  offset=1  timestamp=1700000000001  key=null  value=v2  headers={h: x, n: null}
position=87  base_offset=2  last_offset=3  count=2  leader_epoch=3  producer_id=-1  producer_epoch=-1  \
base_sequence=-1  codec=none  timestamp_type=CreateTime  max_timestamp=8  size_bytes=138  crc_ok=true
  offset=2  timestamp=7  key=0x00ff  run=1  stream=9  sequence=41  sent_ns=5  value_bytes=60
  offset=3  timestamp=8  key=null  value=null
position=225  base_offset=100  last_offset=100  count=1  leader_epoch=3  producer_id=1000  producer_epoch=5  \
base_sequence=-1  codec=none  timestamp_type=CreateTime  max_timestamp=1700000000002  size_bytes=78  crc_ok=true  \
transactional=true  control=true
  offset=100  timestamp=1700000000002  control=COMMIT  coordinator_epoch=9
position=303  base_offset=101  last_offset=101  count=1  leader_epoch=3  producer_id=1000  producer_epoch=5  \
base_sequence=-1  codec=none  timestamp_type=CreateTime  max_timestamp=1700000000002  size_bytes=78  crc_ok=true  \
transactional=true  control=true
  offset=101  timestamp=1700000000002  control=ABORT  coordinator_epoch=9
"""


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("1..2", [0, 2]), ("..0", [0]), ("100..", [100, 101]), ("5..99", []), ("0..9", [0, 2])],
)
def test_a_range_of_offsets(capsys, wanted, found):
    """Every batch that has one of them."""
    two = build_batch([NewRecord(7), NewRecord(8)], base_offset=2)
    Path(f"{NAME}.log").write_bytes(TRANSACTIONAL + two + COMMIT_MARKER + ABORT_MARKER)
    status, out, _ = dump(capsys, f"{NAME}.log", "--offsets", wanted, "--json")
    assert (status, [each["base_offset"] for each in objects(out)]) == (0, found)


@pytest.mark.parametrize("wanted", ["5", "..", "b..c", "7..6", "-1..5"])
def test_a_range_that_is_none(capsys, wanted):
    """An --offsets that is not a range is refused with 254 and the forms it takes."""
    Path(f"{NAME}.log").touch()
    status, out, err = dump(capsys, f"{NAME}.log", f"--offsets={wanted}")
    assert (status, out) == (254, "")
    assert f"--offsets takes A..B, A.. or ..B, not {wanted}" in err or f"--offsets {wanted} ends before" in err


SMALL_FILES = [
    (f"{NAME}.index", struct.pack(">iiii", 4, 0, 9, 500), ["offset=4  position=0", "offset=9  position=500"]),
    ("00000000000000000100.index", struct.pack(">ii", 4, 70) + bytes(80), ["offset=104  position=70"]),
    (f"{NAME}.timeindex", struct.pack(">qiqi", 7, 4, 8, 9), ["timestamp=7  offset=4", "timestamp=8  offset=9"]),
    (
        "00000000000000000100.txnindex",
        struct.pack(">hqqqq", 0, 1000, 100, 105, 100),
        ["producer_id=1000  first_offset=100  last_offset=105  last_stable_offset=100"],
    ),
    (
        "00000000000000000100.snapshot.deleted",
        snapshot_bytes([ProducerEntry(7, 1, (BatchMetadata(3, 5, 90, 92, 11),), False, 11, False, 2, 85)]),
        [
            "producer_id=7  producer_epoch=1  last_sequence=5  first_offset=90  last_offset=92  last_timestamp=11  "
            "coordinator_epoch=2  transaction_first_offset=85"
        ],
    ),
    (
        "00000000000000000100.producers",
        histories_bytes(4, [ProducerEntry(7, 1, (BatchMetadata(3, 5, 90, 92, 11),), True, 11)]),
        [
            "leader_epoch=4  producers=1",
            "producer_id=7  producer_epoch=1  last_sequence=5  first_offset=90  last_offset=92  last_timestamp=11  "
            "batches=1  complete=true",
        ],
    ),
    ("leader-epoch-checkpoint", b"0\n2\n0 0\n3 17\n", ["epoch=0  start_offset=0", "epoch=3  start_offset=17"]),
    ("recovery-point-offset-checkpoint", b"0\n1\nt 0 17\n", ["topic=t  partition=0  offset=17"]),
    ("replication-offset-checkpoint", b"0\n0\n", []),
    ("cleaner-offset-checkpoint", b"", []),
    (
        "partition.metadata",
        checkpoints.partition_metadata_text(uuid.UUID(int=5)).encode(),
        ["version=0  topic_id=00000000-0000-0000-0000-000000000005"],
    ),
    ("meta.properties", b"#\nversion=0\nbroker.id=1\ncluster.id=abc\n", ["version=0  broker.id=1  cluster.id=abc"]),
    (".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":-1}', ["version=0  brokerEpoch=-1"]),
    (
        ".gapless_clean_state",
        clean_state_text({"t-0": LogState((SegmentRecord(0, 9, 700, 1, 2, 8, 0, 0),), ((0, 0), (2, 5)), ())}).encode(),
        ["log=t-0  log_end_offset=9  segments=1  epochs=2  producers=0"],
    ),
    ("faults.jsonl", b'{"fault": "kill", "probe": {"a": null}}\n', ["fault=kill  probe={a: null}"]),
]


@pytest.mark.parametrize(("name", "data", "lines"), SMALL_FILES, ids=[name for name, _, _ in SMALL_FILES])
def test_small_files(capsys, name, data, lines):
    """Each in its own fields; an index may end in the zeros that Kafka keeps in it as room."""
    Path(name).write_bytes(data)
    assert dump(capsys, name) == (0, "".join(f"{line}\n" for line in lines), "")


BATCH = build_batch([NewRecord(NOW_MS, b"k", b"v")])
DAMAGED = [
    (f"{NAME}.log", BATCH + BATCH[:-1], 1, "torn tail: the batch at byte 70 has 70 bytes, but only 69 are left"),
    (f"{NAME}.log", BATCH + BATCH[:20], 1, "20 bytes from byte 70 on are not a batch"),
    (f"{NAME}.log", BATCH + bytes(100), 1, "100 zero bytes from byte 70 on"),
    (f"{NAME}.log", BATCH[:-1] + b"x" + BATCH, 2, "the checksum of the batch at byte 0 (offsets 0..0) is wrong"),
    (f"{NAME}.index", struct.pack(">ii", 4, 9) + b"xyz", 1, "3 bytes at byte 8 do not make a whole entry"),
    (f"{NAME}.txnindex", struct.pack(">hqqqq", 7, 1, 1, 1, 1), 0, "the entry at byte 0 has version 7"),
    (f"{NAME}.producers", histories_bytes(4, [])[:-4], 0, "producers' histories of 10 bytes"),
    (f"{NAME}.snapshot", snapshot_bytes([])[:-1] + b"\x01", 0, "the checksum of a producer snapshot does not hold"),
    ("leader-epoch-checkpoint", b"0\n2\n0 0\nx y\n", 1, "line 4: 'x y' is not epoch start_offset"),
    ("recovery-point-offset-checkpoint", b"0\n5\nt 0 17\n", 1, "line 2: '5' entries announced, but 1 are valid"),
    ("recovery-point-offset-checkpoint", b"1\n0\n", 0, "line 1: version '1'"),
    ("partition.metadata", b"version: 0\n", 0, "topic_id"),
    ("meta.properties", b"\xff\xfe", 0, "no '='"),
    ("control.jsonl", b'{"a": 1}\n{"b": 2', 1, "torn last line"),
    ("p.arrow", b"no arrow at all", 0, "p.arrow"),
]


@pytest.mark.parametrize(("name", "data", "good", "what"), DAMAGED, ids=range(len(DAMAGED)))
def test_damage(capsys, name, data, good, what):
    """What is good is printed, then one line says what is wrong and where, and the status is 1."""
    Path(name).write_bytes(data)
    status, out, err = dump(capsys, name, "--json")
    assert (status, len(objects(out))) == (1, good)
    assert what in err
    assert err.startswith(f"gapless: {name} is damaged: ")


def test_cut_off_output_is_no_error():
    """`| head` ends the dump quietly."""
    Path("faults.jsonl").write_bytes(b'{"fault": "kill"}\n' * 20_000)
    dumping = subprocess.Popen(
        [sys.executable, "-m", "chaos.commands.main", "dump", "faults.jsonl"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert dumping.stdout is not None
    assert dumping.stdout.readline() == b"fault=kill\n"
    dumping.stdout.close()
    assert dumping.stderr is not None
    with dumping.stderr as errors:
        assert errors.read() == b""
    assert dumping.wait(30) == 0


# Directories


@pytest.fixture
def replica() -> Path:
    """A partition of three segments as a broker leaves it after a clean stop."""
    storage = OsStorage()
    storage.makedirs("data/t-0")
    config = LogConfig(segment_bytes=1_000, index_interval_bytes=150)
    log = PartitionLog.open("data/t-0", "t", 0, config, storage, ManualClock(NOW_MS), clean=False)
    for number in range(30):
        batch = bytearray(build_batch([NewRecord(NOW_MS + number, b"k", b"v" * 20)], producer_id=7, producer_epoch=0,
                                      base_sequence=number))  # fmt: skip
        log.append_as_leader(memoryview(batch), parse_header(batch), number // 20, NOW_MS)
    log.set_topic_id(uuid.UUID(int=5))
    log.close(clean=True)
    return Path("data/t-0")


def test_a_replica_that_is_well(capsys, replica):
    """A line for each segment and each small file, nothing wrong; and one line for it among a broker's replicas."""
    status, out, err = dump(capsys, str(replica), "--json")
    assert (status, err) == (0, "")
    found = [each for each in objects(out) if "segment" in each]
    assert [each["base_offset"] for each in found] == [0, 11, 22]
    assert [(each["end_offset"], each["records"], each["epochs"]) for each in found] == [
        (11, 11, "0..0"),
        (22, 11, "0..1"),
        (30, 8, "1..1"),
    ]
    assert len(list(replica.glob("*.index"))) == 3
    status, out, err = dump(capsys, "data")
    assert (status, err) == (0, "")
    assert out.splitlines()[0].startswith("partition=t-0  segments=3  start=0  end=30")


def test_a_run_is_its_brokers_data_and_no_replica(capsys, replica):
    """Runs and brokers write logs of their own, ``run.log`` and ``broker.log``: such a name makes no segment."""
    node = Path("run/nodes/1")
    node.mkdir(parents=True)
    Path("data").rename(node / "data")
    for log in (Path("run/run.log"), node / "broker.log"):
        log.write_text("words\n")
    Path("run/run.json").write_text("{}")
    for path, brokers in (("run", "broker=1  "), (str(node), "")):
        status, out, err = dump(capsys, path)
        assert (status, err) == (0, "")
        assert out.splitlines()[0].startswith(f"{brokers}partition=t-0  segments=3")


def overwrite(path: Path, at: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


WRONG = [
    (f"{NAME}.index", 4, struct.pack(">i", 1), "is said to be at byte 1, where no batch begins"),
    (f"{NAME}.index", 0, struct.pack(">i", 1), "offset 1 is said to be at byte"),
    (f"{NAME}.timeindex", 0, struct.pack(">q", 5), "(5, "),
    (f"{NAME}.timeindex", 8, struct.pack(">i", 900), "no batch has that offset"),
    (f"{NAME}.log", 80, b"\xff", "the checksum of the batch at byte 0 (offsets 0..0) is wrong"),
    ("leader-epoch-checkpoint", 4, b"4", "leader-epoch-checkpoint: epoch 4 for offset 0, the batch there has 0"),
    ("00000000000000000011.log", 0, struct.pack(">q", 5), "begins at offset 5, expected 11"),
    ("partition.metadata", 0, b"V", "partition.metadata"),
    ("stranger", 0, b"x", "stranger: no file of a log has that name"),
    ("00000000000000000099.snapshot", 0, snapshot_bytes([]), "beyond the end of the log, 30"),
]


@pytest.mark.parametrize(("name", "at", "data", "what"), WRONG, ids=range(len(WRONG)))
def test_a_replica_whose_files_disagree(capsys, replica, name, at, data, what):
    """The entry or batch is named, in the replica and from its broker's directory; all segments are still shown."""
    (replica / name).touch()
    overwrite(replica / name, at, data)
    status, out, err = dump(capsys, str(replica))
    assert (status, out.count("segment=")) == (1, 3)
    assert what in err
    assert name in err
    status, out, err = dump(capsys, "data")
    assert (status, out.count("partition=t-0")) == (1, 1)
    assert what in err


@pytest.mark.parametrize("gone", [["00000000000000000011"], ["*"]], ids=["one of three", "all"])
@pytest.mark.parametrize("with_indexes", [True, False])
def test_a_replica_without_its_segments(capsys, replica, gone, with_indexes):
    """An index whose segment is gone says so, and a log has a segment at least. A hole alone may be compaction's."""
    for pattern in gone:
        for suffix in [".log", *([".index", ".timeindex"] if with_indexes else [])]:
            for path in replica.glob(f"{pattern}{suffix}"):
                path.unlink()
    is_hole = with_indexes and gone != ["*"]
    for asked in (str(replica), "data"):
        status, _, err = dump(capsys, asked)
        assert status == (0 if is_hole else 1), err
        assert ("none found, but every log has at least one" in err) == (gone == ["*"])
        assert ("00000000000000000011.index: the segment" in err) == (not with_indexes)


def test_a_directory_that_is_nothing(capsys):
    """An empty directory is refused: it is not a partition directory."""
    Path("empty").mkdir()
    status, _, err = dump(capsys, "empty")
    assert status == 254
    assert "is not a partition directory" in err


@pytest.mark.parametrize(
    ("suffix", "why"),
    [("delete", "being deleted"), ("future", "a future replica"), ("stray", "a stray replica")],
)
@pytest.mark.parametrize("has_others", [True, False])
def test_a_directory_that_no_broker_serves_is_skipped_and_named(capsys, replica, suffix, why, has_others):
    """A replica that awaits its removal was cut off, which is no damage, also if no other replica is there."""
    passing = Path(f"data/u-0.{'0a' * 16}-{suffix}")
    shutil.copytree(replica, passing)
    overwrite(passing / f"{NAME}.timeindex", 0, struct.pack(">q", 5))
    (passing / "00000000000000000022.snapshot").unlink()
    Path("data/meta.properties").write_text(checkpoints.meta_properties_text(1, "c"))
    if not has_others:
        shutil.rmtree(replica)
    status, out, err = dump(capsys, "data")
    assert (status, err) == (0, "")
    assert out.splitlines()[has_others:] == [f"directory={passing.name}  skipped={why}"]
    # who asks for it by its name sees what is in it
    status, out, err = dump(capsys, str(passing))
    assert (status, err, out.count("segment=")) == (0, "", 3)


def test_a_neighbor_whose_name_only_looks_as_if_it_was_going_is_checked(capsys, replica):
    """Without 32 hex digits it is nothing that a broker renamed."""
    other = Path("data/u-0.0a0a-delete")
    shutil.copytree(replica, other)
    overwrite(other / f"{NAME}.timeindex", 0, struct.pack(">q", 5))
    status, _, err = dump(capsys, "data")
    assert status == 1
    assert f"{other.name}/{NAME}.timeindex" in err
