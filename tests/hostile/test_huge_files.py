"""Files of others that say that they are huge, and take no room on disk, or that never end: what reads them stays
small, ends, and does not pass over them (M4).
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from chaos.commands.main import run_command
from cluster.protocol.batch import CRC_AT, CRC_FROM
from cluster.protocol.records import NewRecord, build_batch
from tests.hostile.test_history_bombs import DUMP, MOST_MB
from tests.support.settings import run_model
from tests.support.stories import clean
from tests.verifier.files.test_replica import Broker
from verifier.accounts.summing import account_of
from verifier.closing.closing import gather
from verifier.evidence import seal
from verifier.evidence.declared import DeclaredEvidence, DeclaredProcess
from verifier.evidence.run_directory import RunDirectory, read_json, read_json_lines
from verifier.evidence.run_model import TopicSpec
from verifier.files.headers import read_headers
from verifier.files.replica import check
from verifier.segments import walk

pytestmark = pytest.mark.timeout(120)

NAME = "00000000000000000000"
HUGE = 4 << 30
VERIFY = DUMP.replace('"dump"', '"verify"')
#: Runs ``gapless dump`` of each path, and says as JSON how each ended and how much memory had been taken by then.
DUMP_EACH = """
import contextlib, io, json, re, sys
from chaos.commands.main import run_command
told = {}
for path in sys.argv[1:]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = run_command(["dump", path])
    kilobytes = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1)
    told[path] = [status, said.getvalue().splitlines(), int(kilobytes) >> 10]
print(json.dumps(told))
"""


def sparse(path: Path, size: int = HUGE, head: bytes = b"") -> Path:
    path.write_bytes(head)
    os.truncate(path, size)
    return path


def in_a_child(path: Path, script: str = DUMP) -> tuple[int, str, list[str]]:
    """Status, output, and lines of the error output of a command, which took little memory."""
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, env=environment)
    *said, peak = done.stderr.splitlines()
    assert int(peak.split()[1]) < MOST_MB, peak
    return done.returncode, done.stdout, said


#: Name, size, status of ``gapless dump``, and what it says.
DUMPED = [
    (f"{NAME}.log", 5 * HUGE, 1, "21474836480 zero bytes from byte 0 on"),
    (f"{NAME}.index", HUGE, 0, ""),
    (f"{NAME}.timeindex", HUGE, 1, "do not make a whole entry"),
    (f"{NAME}.txnindex", HUGE, 1, "do not make a whole entry"),
    (f"{NAME}.snapshot", HUGE, 254, "it has 4,294,967,296 bytes; at most 67,108,864 are read"),
    (f"{NAME}.producers", HUGE, 254, "it has 4,294,967,296 bytes; at most 67,108,864 are read"),
    ("leader-epoch-checkpoint", HUGE, 254, "it has 4,294,967,296 bytes; at most 67,108,864 are read"),
    ("leader-epoch-checkpoint", 60_000_000, 254, "line 1 has more than 65,536 bytes"),
    ("partition.metadata", HUGE, 254, "it has 4,294,967,296 bytes; at most 65,536 are read"),
    (".gapless_clean_state", HUGE, 254, "it has 4,294,967,296 bytes; at most 67,108,864 are read"),
    ("faults.jsonl", HUGE, 254, "it has 4,294,967,296 bytes; at most"),
    ("faults.jsonl", 100_000_000, 254, "line 1 has more than 4,194,304 bytes"),
    ("producers.arrow", HUGE, 1, "no Arrow message at byte 0"),
]


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Status, lines of the error output and peak of memory so far, by path: of each file of the table and of its
    directory, dumped one after the other in one child."""
    place = tmp_path_factory.mktemp("dumped")
    paths: list[Path] = []
    for number, (name, size, _, _) in enumerate(DUMPED):
        home = place / str(number) / "t-0"
        home.mkdir(parents=True)
        paths += [sparse(home / name, size), *([home] if is_looked_for(name) else [])]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    argv = [sys.executable, "-c", DUMP_EACH, *map(str, paths)]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def is_looked_for(name: str) -> bool:
    """Whether a dump of its directory reads the file."""
    return not name.endswith((".jsonl", ".arrow", "state", "index"))


@pytest.mark.parametrize(("number", "name", "status", "said"), [(i, n, x, s) for i, (n, _, x, s) in enumerate(DUMPED)])
def test_dump_reads_a_huge_file_in_pieces_or_not_at_all(
    dumped: dict[str, Any], number: int, name: str, status: int, said: str
) -> None:
    """And says so in a line that names the file; in its directory it is damage like any other."""
    path, (found, lines, peak_mb) = next((path, told) for path, told in dumped.items() if f"/{number}/t-0/" in path)
    assert (found, len(lines)) == (status, 1 if said else 0)
    assert all(said in line and path in line for line in lines)
    assert peak_mb < MOST_MB
    if is_looked_for(name):
        found, lines, peak_mb = dumped[os.path.dirname(path)]
        assert found == 1 and any(said in line and name in line for line in lines)
        assert peak_mb < MOST_MB


def huge_batch(path: Path, size: int, crc: int) -> Path:
    """A segment with a batch whose records are a hole."""
    head = bytearray(build_batch([NewRecord(1, None, b"")])[:61])
    struct.pack_into(">i", head, 8, size - 12)
    struct.pack_into(">I", head, CRC_AT, crc)
    return sparse(path, size, bytes(head))


@pytest.mark.parametrize("directory", [False, True])
def test_dump_checks_a_huge_batch_in_pieces(tmp_path: Path, directory: bool) -> None:
    """Its records are not read, even if its checksum is right."""
    home = tmp_path / "t-0"
    home.mkdir()
    log = huge_batch(home / f"{NAME}.log", 1 << 28, 0)
    asked = home if directory else log
    status, _, lines = in_a_child(asked)
    assert status == 1 and "the checksum of the batch at byte 0" in lines[0]
    with log.open("rb") as file:
        crc, piece = crc32c(file.read(1 << 20)[CRC_FROM:]), bytes(1 << 20)
    for _ in range(255):
        crc = crc32c(piece, crc)
    huge_batch(log, 1 << 28, crc)
    status, _, lines = in_a_child(asked)
    assert status == int(directory)
    assert not directory or "268,435,456 bytes; at most 104,857,600 are read" in lines[0]


def test_damage_on_many_lines_is_counted(tmp_path: Path) -> None:
    """A million lines that are wrong take no more room than one."""
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n1\n" + "x\n" * 1_000_000)
    status, _, lines = in_a_child(path)
    assert (status, len(lines)) == (1, 21)
    assert lines[-1].endswith("is damaged in 999981 more places")


def test_an_index_ends_where_its_entries_do(tmp_path: Path) -> None:
    """Whatever lies between them: holes, zeros that were written, pieces."""
    path = sparse(tmp_path / f"{NAME}.index", 1 << 22, struct.pack(">ii", 4, 9))
    with path.open("r+b") as file:
        file.seek((1 << 21) + 8)
        file.write(struct.pack(">ii", 7, 99) + bytes(100_000))
    status, out, _ = in_a_child(path)
    lines = out.splitlines()
    assert (status, len(lines)) == (0, (1 << 18) + 2)
    assert (lines[0], lines[-1]) == ("offset=4  position=9", "offset=7  position=99")


NOT_FILES: list[Callable[[Path], object]] = [os.mkfifo, lambda path: path.symlink_to("/dev/zero")]


@pytest.mark.parametrize("make", NOT_FILES, ids=["pipe", "device"])
@pytest.mark.parametrize("name", [f"{NAME}.log", f"{NAME}.index", "partition.metadata", "faults.jsonl", "a.arrow"])
def test_dump_reads_only_files(
    tmp_path: Path, name: str, make: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
) -> None:
    """What has no end is not empty: one line, and no status of success."""
    home = tmp_path / "t-0"
    home.mkdir()
    make(home / name)
    assert run_command(["dump", str(home / name)]) == 254
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{name} cannot be read: it is a " in said and "not a file" in said
    if name.endswith((".log", "metadata")):
        assert run_command(["dump", str(home)]) == 1
        assert f"{name}: it is a " in capsys.readouterr().err


def test_verify_does_not_read_a_huge_run(tmp_path: Path) -> None:
    """The run is unknown, as if its account of itself were damaged."""
    sparse(tmp_path / "run.json")
    status, out, lines = in_a_child(tmp_path, VERIFY)
    assert status == 2 and out.startswith("RESULT unknown")
    assert any("run.json cannot be read: it has 4,294,967,296 bytes; at most 16,777,216 are read" in x for x in lines)


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("a.jsonl", b'{"process": 0, "type": "invoke", "f": "send", "value": [["send", 1, 2]]}\n'),
        ("a.edn", b"{:process 0, :type :invoke, :f :send, :value [[:send 1 2]]}\n"),
    ],
)
def test_verify_does_not_read_the_hole_of_a_history(tmp_path: Path, name: str, operation: bytes) -> None:
    """It would be one line of gigabytes: the history is unknown, as if it were damaged."""
    path = sparse(tmp_path / name, head=operation)
    status, out, lines = in_a_child(path, VERIFY)
    assert status == 2 and out.startswith("RESULT unknown")
    assert any("nothing was written from byte" in line for line in lines)


@pytest.mark.parametrize("command", ["verify", "report", "dump", "export"])
def test_a_link_to_itself_is_refused_in_a_line(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every command that is given a path."""
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert run_command([command, str(loop)]) == 254
    assert capsys.readouterr().err.count("\n") == 1


def test_a_pipe_is_no_state_of_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No one waits for what it brings."""
    os.mkfifo(tmp_path / "up.json")
    assert run_command(["status", "--data", str(tmp_path)]) == 1
    assert run_command(["down", "--data", str(tmp_path)]) == 0
    assert "no cluster is running" in capsys.readouterr().err


@pytest.mark.parametrize("make", [sparse, *NOT_FILES], ids=["huge", "pipe", "device"])
@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("leader-epoch-checkpoint", "unreadable"),
        ("../recovery-point-offset-checkpoint", "unreadable"),
        ("*.snapshot", "unreadable"),
        ("*.producers", "unreadable"),
        ("*.index", "size"),
        ("*.timeindex", "size"),
    ],
)
def test_the_verifier_finds_what_it_does_not_read(
    tmp_path: Path, name: str, cause: str, make: Callable[[Path], object]
) -> None:
    """A file that is no more what a broker leaves is an anomaly, and not passed over."""
    broker = Broker(tmp_path / "data", 1)
    broker.write(40)
    broker.stop()
    *_, path = sorted((broker.data / "t-0").glob(name)) if "*" in name else [broker.data / "t-0" / name]
    path.unlink()
    make(path)
    found = [each for each in check(broker.replica()) if each.file == path.name]
    assert [each.cause for each in found] == [cause]
    assert ("at most" if make is sparse else "not a file") in found[0].problem


@pytest.mark.parametrize("make", NOT_FILES, ids=["pipe", "device"])
def test_no_evidence_is_a_pipe(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """It would look empty: a log, a history."""
    make(tmp_path / f"{NAME}.log")
    make(tmp_path / "a.arrow")
    with pytest.raises(OSError, match="not a file"):
        read_headers(tmp_path / f"{NAME}.log")
    account = account_of(tmp_path / "a.arrow")
    assert (account.state, "not a file" in (account.error or "")) == ("damaged", True)


@pytest.mark.parametrize("make", [sparse, *NOT_FILES], ids=["huge", "pipe", "device"])
def test_what_closes_the_evidence_is_not_passed_over(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """Each file that is not read is named with the reason, from which a doubt follows."""
    run = RunDirectory(tmp_path).prepare()
    (run.node(1) / "data" / "t-0").mkdir(parents=True)
    run.run_json.write_text("{}")
    seal.take(run)
    metadata = run.node(1) / "data" / "t-0" / "partition.metadata"
    files = [run.faults_jsonl, run.leaders_jsonl, run.resources_jsonl, run.load_settings_json]
    files += [run.series_jsonl("p"), run.status_json("p")]
    for path in (*files, metadata):
        make(path)
    declared = DeclaredEvidence([DeclaredProcess("p", "producers", "gapless")], [1], {"t-0": [1]}, 0)
    model = run_model(topics=[TopicSpec("t", 1, 1, "", {})], evidence=declared)
    closing = gather(run, model)
    assert [each.error for each in closing.unreadable if "are read" in each.error or "not a file" in each.error]
    assert len(closing.unreadable) == len(files)
    assert closing.topic_ids == {(1, "t", 0): None}
    assert closing.differences


def test_a_log_of_one_line_is_examined_in_pieces(tmp_path: Path) -> None:
    """And a log that is no file is named."""
    run = RunDirectory(tmp_path).prepare()
    run.node(1).mkdir()
    log = sparse(run.node(1) / "broker.log", 1 << 20, b"x ERROR cluster: first\n")
    with log.open("ab") as file:
        file.write(b"\ny ERROR cluster: second\n")
    os.mkfifo(run.node(1) / "process.log")
    closing = gather(run, run_model(topics=[TopicSpec("t", 1, 3, "", {})]))
    assert [(each.count, each.first) for each in closing.alarms] == [(2, "x ERROR cluster: first")]
    assert "nodes/1/process.log" in [each.path for each in closing.unreadable]


def test_a_seal_is_not_compared_with_what_never_ends(tmp_path: Path) -> None:
    """An empty file was sealed; a device has no size either."""
    run = RunDirectory(tmp_path).prepare()
    run.run_json.write_text("{}")
    path = run.node(1)
    path.mkdir()
    (path / "a").touch()
    taken = seal.take(run)
    (path / "a").unlink()
    (path / "a").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="not a file"):
        seal.compare(run, taken)


def test_a_huge_batch_is_checked_in_pieces(tmp_path: Path) -> None:
    """By the verifier, too, with the same result as at once."""
    log = huge_batch(tmp_path / f"{NAME}.log", 40 << 20, crc32c(bytes(8)))
    right = crc32c(log.read_bytes()[CRC_FROM:])
    for crc, is_right in ((right, True), (right ^ 1, False)):
        data = walk.open_segment(huge_batch(log, 40 << 20, crc))
        found = walk.walk(data)
        fields = walk.headers(data, found.positions)
        assert list(walk.check_crcs(data, found.positions, found.sizes, fields["crc"])) == [is_right]


def test_a_file_of_json_has_a_bound(tmp_path: Path) -> None:
    """It is read if it has exactly that."""
    path = tmp_path / "a.json"
    path.write_text("{}".ljust(100))
    assert read_json(path, 100) == {}
    with pytest.raises(ValueError, match="it has 100 bytes; at most 99 are read"):
        read_json(path, 99)


@pytest.mark.full
@pytest.mark.integration
@pytest.mark.timeout(600)
def test_no_run_is_valid_of_which_a_file_was_not_read(tmp_path: Path) -> None:
    """Each is judged to its end, or it is said what could not be read."""
    checkpoint, logs, history = runs = [clean().write(tmp_path / name) for name in ("checkpoint", "log", "history")]
    for run, pattern, make in (
        (checkpoint, "leader-epoch-checkpoint", sparse),
        (logs, "*.log", os.mkfifo),
        (history, "*.arrow", os.mkfifo),
    ):
        path = min(run.path.rglob(pattern))
        path.unlink()
        make(path)
    argv = [sys.executable, "-m", "verifier.main", *(str(run.path) for run in runs)]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    outcomes = tmp_path / "outcomes.jsonl"
    subprocess.run([*argv, "--outcomes", str(outcomes)], env=environment, capture_output=True, check=False)
    errors = [line["error"] for line in read_json_lines(outcomes)]
    told = [error or read_json(run.verdict_json)["verdict"] for run, error in zip(runs, errors, strict=True)]
    log = min(logs.path.rglob(f"{NAME}.log"))
    assert told == ["invalid", f"{log}: it is a pipe, not a file", "unknown"]
