"""Files that others wrote: too deep, too large when written out, with odd numbers, naming processes of others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from crc32c import crc32c

from chaos.commands import preflight
from chaos.commands.main import run_command
from chaos.commands.up_state import running
from chaos.exits import BadRequest
from chaos.experiment.asked import Asked
from chaos.experiment.experiment import ExperimentError
from chaos.experiment.resolve import resolve
from chaos.sweeps.model import SweepError, parse_seeds
from cluster.config import broker, topic
from cluster.config.errors import ConfigError
from cluster.log.clean_state import clean_state_text, parse_clean_state
from cluster.log.errors import CheckpointError
from cluster.metadata.znodes import BrokerRegistration, MalformedZnode
from loadgen.documents import DocumentError, load_yaml
from verifier.evidence.run_directory import RunDirectory
from verifier.segments.rows import find_segments

DEEP = "[" * 100_000 + "]" * 100_000
OPERATION = '{"process": 0, "type": "invoke", "f": "send", "value": %s}'


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("deep.jsonl", OPERATION % DEEP + "\n", 2),
        ("deep.json", "[" + OPERATION % DEEP + "]", 2),
        ("deep.edn", f"{{:process 0, :type :invoke, :f :send, :value {DEEP}}}\n", 2),
        ("only.jsonl", DEEP + "\n", 254),
    ],
)
def test_a_history_that_is_nested_too_deeply_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, status: int
) -> None:
    """Not by a failure of the harness (255) and a traceback."""
    (tmp_path / name).write_text(text)
    assert run_command(["verify", str(tmp_path / name)]) == status
    err = capsys.readouterr().err
    assert "nested too deeply" in err or (status == 254 and "is not a history" in err)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.edn", "{:process 0, :type :invoke, :f :send, :value [[:send 1 NUMBER]]}", "a number has 5,000 characters"),
        ("b.edn", "{:process NUMBER, :type :invoke, :f :send, :value []}", "a number has 5,000 characters"),
        ("a.jsonl", OPERATION % '[["send", 1, NUMBER]]', "a number has more digits than are read"),
        ("a.json", "[" + OPERATION % '[["send", 1, NUMBER]]' + "]", "a number has more digits than are read"),
        ("f.jsonl", '{"process": 0, "type": "invoke", "f": [1], "value": []}', "f"),
        ("g.jsonl", '{"process": 0, "type": {"a": 1}, "f": "send", "value": []}', "type"),
    ],
)
def test_a_history_of_odd_values_is_unknown_in_our_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, why: str
) -> None:
    """One line names the file, its line and what is wrong; nothing of Python's."""
    good = "{:process 0, :type :invoke, :f :send, :value [[:send 1 1]]}\n" if "edn" in name else OPERATION % "[]" + "\n"
    good = "" if name.endswith("json") else good
    (tmp_path / name).write_text(good + text.replace("NUMBER", "9" * 5000) + "\n")
    assert run_command(["verify", str(tmp_path / name)]) == 2
    out, err = capsys.readouterr()
    assert f"{tmp_path / name}:" in out + err and why in out + err
    assert not any(word in out + err for word in ("unhashable", "ValueError", "int_max", "harness"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("t-99999999999/00000000000000000000.log", "t-99999999999: the number of its partition is beyond"),
        (f"t-{'9' * 200}/00000000000000000000.log", "9: the number of its partition is beyond"),
        ("t-0/99999999999999999999.log", "99999999999999999999.log: the offset in its name is beyond"),
    ],
)
def test_a_segment_with_an_impossible_name_is_named(tmp_path: Path, name: str, why: str) -> None:
    """Not by a number that does not fit into a column."""
    path = tmp_path / name
    path.parent.mkdir()
    path.touch()
    with pytest.raises(ValueError, match=why):
        find_segments("run", 1, 1, tmp_path)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "JSON"])
@pytest.mark.parametrize("depth", [300, 600, 990, 100_000])
def test_dump_says_that_a_line_is_nested_too_deeply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], depth: int, options: list[str]
) -> None:
    """Or prints it, if it is not: what can be read just so may be too deep to be written."""
    path = tmp_path / "faults.jsonl"
    path.write_text('{"a":' * depth + "1" + "}" * depth + "\n")
    status = run_command(["dump", str(path), *options])
    out, err = capsys.readouterr()
    assert (status == 0 and out.count("a") >= 1) or (status in (1, 254) and "nested too deeply" in err)
    if depth == 100_000:
        assert status == 1


def test_a_run_that_is_nested_too_deeply_is_refused_in_words(tmp_path: Path) -> None:
    """Its account of itself, and its journals: an error that callers know, no traceback."""
    directory = RunDirectory.create(tmp_path, "deep", 1, datetime.now(UTC))
    directory.run_json.write_text(f'{{"run_id": {DEEP}}}')
    directory.faults_jsonl.write_text(f'{{"fault": {DEEP}}}\n')
    for read in (directory.read_run, directory.read_faults):
        with pytest.raises(ValueError, match="nested too deeply"):
            read()


def test_what_a_broker_reads_back_is_malformed_and_does_not_end_it() -> None:
    """The note of a clean stop, and a node in ZooKeeper."""
    with pytest.raises(MalformedZnode):
        BrokerRegistration.decode(1, DEEP.encode())
    version = clean_state_text({}).split()[0]
    with pytest.raises(CheckpointError):
        parse_clean_state(f"{version} {crc32c(DEEP.encode()):08x}\n{DEEP}\n")


def test_a_document_that_merges_itself_into_a_mountain_is_refused() -> None:
    """Some lines of YAML would be merged for hours; a mapping that is merged a thousand times would not."""
    lines = ["a0: &a0 {k0: 1, j0: 2}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}" for n in range(1, 40)]
    with pytest.raises(DocumentError, match=r"line \d+: it stands for more than 200,000 values"):
        load_yaml("\n".join(lines))
    laughs = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))])
    with pytest.raises(DocumentError, match="stands for more than"):
        load_yaml(laughs)
    usual = "base: &base {rate: 1, keys: 2}\n" + "\n".join(f"w{n}: {{<<: *base, keys: {n}}}" for n in range(200))
    assert load_yaml(usual)["w199"] == {"rate": 1, "keys": 199}
    circle = load_yaml("a: &a [1, *a]")
    assert circle["a"][1] is circle["a"]


@pytest.mark.parametrize("text", ["60_000", "\u0661\u0662", "1e3", "0x10", "nan", "", "9" * 5000, "\u00b2"])
def test_a_whole_number_is_written_in_plain_digits(text: str) -> None:
    """Python would take underscores and the digits of every script for a number; Kafka's tools would not."""
    with pytest.raises(ConfigError, match="expected an integer"):
        topic.TOPIC_KEYS.parse({"retention.ms": text})
    with pytest.raises(ConfigError):
        broker.validate({"listeners": f"PLAINTEXT://127.0.0.1:{text}"})


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999", "0.5_0", "\u0661.5", "1e", "."])
def test_a_number_is_finite_and_written_in_plain_digits(text: str) -> None:
    """No comparison holds with ``nan``: it passed every limit."""
    with pytest.raises(ConfigError, match="expected a number"):
        topic.TOPIC_KEYS.parse({"min.cleanable.dirty.ratio": text})


def test_plain_numbers_are_as_they_were() -> None:
    """Signs, blanks around, fractions, exponents; Python's own values too."""
    keys = {"retention.ms": " +60000 ", "min.cleanable.dirty.ratio": "5e-1", "segment.bytes": 1_048_576}
    parsed = topic.TOPIC_KEYS.parse(keys)
    assert list(parsed.values()) == [60_000, 0.5, 1_048_576]
    assert topic.TOPIC_KEYS.parse({"retention.ms": "-1", "min.cleanable.dirty.ratio": ".5"})["retention.ms"] == -1


@pytest.mark.parametrize("text", ["\u00b2", "\u0663", "9" * 5000])
def test_numbers_elsewhere_are_plain_digits_too(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some characters are digits and no number: int() of them ended a command."""
    monkeypatch.setattr(preflight, "check_java", lambda: None)
    with pytest.raises(SweepError):
        parse_seeds(text)
    asked = Asked(seed=0, zookeeper=f"127.0.0.1:{text}")
    with pytest.raises(BadRequest, match="takes HOST:PORT"):
        preflight.check_outside(resolve(asked)[0])
    (tmp_path / "nodes" / text[:200]).mkdir(parents=True)
    (tmp_path / "nodes" / "7").mkdir()
    assert RunDirectory(tmp_path).broker_ids() in ([7], [7, int("9" * 200)])


@pytest.mark.parametrize("name", ["a\nb", "x\x1b[2J", "\u202e"])
def test_an_experiments_name_can_be_shown(name: str) -> None:
    """It becomes a directory, a title and part of a command."""
    with pytest.raises(ExperimentError, match="pick another name"):
        resolve(Asked(seed=0, name=name))


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user that is no cluster, whatever the end of its command line says."""
    argv = [sys.executable, "-c", "import time; time.sleep(60)", "gapless", "down"]
    process = subprocess.Popen(argv)
    yield process
    process.kill()
    process.wait()


def test_down_signals_no_process_but_that_of_the_cluster(
    tmp_path: Path, bystander: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """A received ``up.json`` may name any process, with its time of creation."""
    time = psutil.Process(bystander.pid).create_time()
    for pid in (bystander.pid, -1, 2**70, "x", None, [1]):
        state = {"pid": pid, "creation_time": time, "metrics": ["http://127.0.0.1:1/"]}
        (tmp_path / "up.json").write_text(json.dumps(state))
        assert run_command(["status", "--data", str(tmp_path)]) == 1
        assert run_command(["down", "--data", str(tmp_path)]) == 0
        assert "no cluster is running" in capsys.readouterr().err
    assert bystander.poll() is None


@pytest.mark.parametrize(
    ("words", "data", "is_cluster"),
    [
        (["up", "--data", "here"], "here", True),
        (["up", "--json", "--data=here"], "here", True),
        (["up", "--brokers", "1"], "results/up", True),
        (["up", "--data", "there"], "here", False),
        (["run", "up", "--data", "here"], "here", False),
    ],
)
def test_the_cluster_is_known_by_its_command_line(
    tmp_path: Path, words: list[str], data: str, is_cluster: bool
) -> None:
    """The program, the command, and the directory, seen from where it runs."""
    (tmp_path / "gapless").write_text("import time; print(flush=True); time.sleep(60)")
    with subprocess.Popen([sys.executable, "gapless", *words], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (tmp_path / data).mkdir(parents=True)
        state = {"pid": process.pid, "creation_time": psutil.Process(process.pid).create_time()}
        (tmp_path / data / "up.json").write_text(json.dumps(state))
        assert (running(tmp_path / data) is not None) is is_cluster
        os.kill(process.pid, signal.SIGKILL)


def test_down_signals_no_cluster_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who runs this as root could end it: the file, the time and the command line are right, the owner is not."""
    (tmp_path / "gapless").write_text("import time; print(flush=True); time.sleep(60)")
    argv = [sys.executable, "gapless", "up", "--data", "."]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE) as process, ExitStack() as stack:
        stack.callback(process.kill)
        assert process.stdout is not None
        process.stdout.readline()
        state = {"pid": process.pid, "creation_time": psutil.Process(process.pid).create_time(), "metrics": []}
        (tmp_path / "up.json").write_text(json.dumps(state))
        assert running(tmp_path) is not None
        own = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
        assert running(tmp_path) is None
        assert run_command(["down", "--data", str(tmp_path)]) == 0
        assert "no cluster is running" in capsys.readouterr().err
        assert process.poll() is None
