"""Options and variables of a load that is started by hand, and how they meet the settings file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import configargparse
import pytest

from loadgen.settings import LoadSettings, SettingsError
from loadgen.users.command_line import add_options
from loadgen.users.options import is_conducted, producer_count, reader_count, resolve_options, settle_options
from verifier.evidence.run_directory import RunDirectory


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def parse(*arguments: str) -> Any:
    parser = configargparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(arguments)


def test_by_hand_everything_has_a_default(tmp_path: Path) -> None:
    """A fresh run id, a directory under results/locust, the topic made if absent, all users but the readers produce."""
    options = parse()
    settle_options(options)
    resolved = resolve_options(options, None, producers=4)
    assert resolved.settings == LoadSettings(
        run_id=options.kafka_run_id, producers=4, create_topic=True, readers=("confluent",)
    )
    assert resolved.run.path.parent == Path("results/locust")
    assert resolved.run.path.name.endswith(f"Z-s{options.kafka_run_id}")
    assert resolved.run.history_dir.is_dir()
    assert resolved.process == "load"


def test_options_and_variables_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option has its variable; settings of the clients are KEY=VALUE."""
    monkeypatch.setenv("LOCUST_KAFKA_TOPIC", "other")
    options = parse("--kafka-rate", "50", "--kafka-producer-config", "acks=1", "--kafka-producer-config", "linger.ms=0")
    settle_options(options)
    settings = resolve_options(options, None, producers=1).settings
    assert (settings.topic, settings.rate, settings.acks) == ("other", 50.0, "1")
    assert settings.producer_config == {"acks": "1", "linger.ms": "0"}


def test_the_settings_file_is_the_base_and_options_outrank_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the conductor starts it: file, directory and name come by variables."""
    path = RunDirectory(tmp_path / "run").prepare().load_settings_json
    LoadSettings(run_id=9, topic="t", producers=7, rate=10.0).write(path)
    monkeypatch.setenv("LOCUST_KAFKA_SETTINGS", str(path))
    monkeypatch.setenv("LOCUST_KAFKA_RUN_DIRECTORY", str(tmp_path / "run"))
    monkeypatch.setenv("LOCUST_KAFKA_PROCESS", "producers")
    options = parse("--kafka-rate", "20")
    settle_options(options)
    resolved = resolve_options(options, None, producers=99)
    assert resolved.settings == LoadSettings(run_id=9, topic="t", producers=7, rate=20.0)
    assert (resolved.run.path, resolved.process) == (tmp_path / "run", "producers")


def test_a_settings_file_makes_no_run_of_the_conductors(tmp_path: Path) -> None:
    """Only it keeps the file in the run itself: who gives all three by hand has a load by hand, which is judged."""
    run = RunDirectory(tmp_path / "run").prepare()
    for place in (run.load_settings_json, tmp_path / "settings.json"):
        LoadSettings(run_id=9, producers=7).write(place)
    process = ("--kafka-process", "producers")
    directory = ("--kafka-run-directory", str(run.path))
    for path, others, conducted in (
        (run.load_settings_json, (*process, *directory), True),
        (tmp_path / "settings.json", (*process, *directory), False),
        (tmp_path / "settings.json", process, False),
        (tmp_path / "settings.json", (), False),
    ):
        options = parse("--kafka-settings", str(path), *others)
        settle_options(options)
        assert is_conducted(options) is conducted
        assert resolve_options(options, None, producers=3).settings.producers == (7 if conducted else 3)
        assert [producer_count(options, users, 1) for users in (None, 4)] == [7, 3]


def test_a_workload_by_hand_and_its_contradictions() -> None:
    """Its fields are the load's; an option may fill a gap and not say otherwise."""
    options = parse("--kafka-workload", "compressed", "--kafka-partitions", "3")
    settle_options(options)
    settings = resolve_options(options, None, producers=1).settings
    assert (settings.rate, settings.partitions, settings.producer_config) == (2000, 3, {"compression.type": "lz4"})
    for option in (("--kafka-rate", "5"), ("--kafka-producer-config", "compression.type=gzip")):
        with pytest.raises(SettingsError, match="contradicts"):
            settle_options(parse("--kafka-workload", "compressed", *option))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "unknown workload 'w.yaml'; 'gapless list workloads' shows all, or name an existing file"),
        (b"", "workload w.yaml: it is empty; a workload is a mapping with some of compression, "),
        (b"rate: \xff", "workload w.yaml: line 1: it is not UTF-8 text (byte 0xff)"),
        (b"- rate", "workload w.yaml: it is a list; a workload is a mapping with some of "),
        (b"rate", "workload w.yaml: it is a single value; a workload is a mapping with some of "),
        (
            b"rate: 1\nrate: 2",
            "workload w.yaml: line 2: key 'rate' is given twice, first in line 1; leave one of them out",
        ),
        (b"rate: [", "workload w.yaml: line 1, column 8: it is not YAML: "),
    ],
)
def test_a_workload_file_that_is_none_is_one_clear_line(content: bytes | None, says: str) -> None:
    """What Locust by hand ends with 254 for: the file, what it is, and what it should be; and nothing is written."""
    if content is not None:
        Path("w.yaml").write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        settle_options(parse("--kafka-workload", "w.yaml"))
    assert str(refused.value).startswith(says)
    assert "\n" not in str(refused.value)
    assert not Path("results").exists()


def test_a_workload_that_is_a_directory_is_said_to_be_one(tmp_path: Path) -> None:
    """It is there, and so no unknown name."""
    with pytest.raises(SettingsError, match=r"^workload \.: it cannot be read: it is a directory, not a file$"):
        settle_options(parse("--kafka-workload", "."))


def test_a_workload_says_how_many_write() -> None:
    """Where nobody says it by ``--users``; who says something else is told which number would do."""
    options = parse("--kafka-workload", "crowded")
    settle_options(options)
    assert producer_count(options, None, 1) == producer_count(options, 25, 1) == 24
    with pytest.raises(SettingsError, match=r"--users 9, 1 of which read, contradicts streams 24 .* give --users 25$"):
        producer_count(options, 9, 1)
    for arguments in ((), ("--kafka-workload", "mixed")):
        options = parse(*arguments)
        settle_options(options)
        assert [producer_count(options, users, 1) for users in (None, 9)] == [4, 8]


def test_workers_need_no_workload_file(tmp_path: Path) -> None:
    """The master reads it once and hands it on as it was; another workload that is asked for later is read again."""
    path = tmp_path / "w.yaml"
    path.write_text("rate: 7\nshape: {steps: [[10, 1], [10, 2]]}\n")
    options = parse("--kafka-workload", str(path))
    settle_options(options)
    path.unlink()
    json.dumps(vars(options))
    assert resolve_options(options, 0, producers=1).settings.rate == 7
    options.kafka_workload = "small"
    assert resolve_options(options, 0, producers=1).settings.rate == 10_000


def test_workers_have_their_own_streams_and_histories() -> None:
    """Distributed: no stream number and no file twice."""
    options = parse("--kafka-first-stream", "3")
    settle_options(options)
    resolved = resolve_options(options, 2, producers=4)
    assert (resolved.process, resolved.settings.first_stream) == ("load-w2", 3 + 2 * 65536)


def test_what_cannot_work_is_one_clear_line(tmp_path: Path) -> None:
    """A results directory that cannot be made, a file that is absent, a setting that makes no sense."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="--kafka-results"):
        settle_options(parse("--kafka-results", str(tmp_path / "file")))
    for arguments, names in ((("--kafka-settings", "absent.json"), r"absent\.json"), (("--kafka-rate", "0"), "rate")):
        with pytest.raises(SettingsError, match=names):
            settle_options(parse(*arguments))
    with pytest.raises(SettingsError, match=r"--kafka-consumer-config bootstrap\.servers=b:1: .*leave it out"):
        settle_options(parse("--kafka-consumer-config", "bootstrap.servers=b:1"))
    assert list(Path().iterdir()) == [tmp_path.relative_to(Path.cwd()) / "file"]


def test_a_single_user_writes() -> None:
    """One of several users reads, unless it is said how many do; where only readers are started, all do."""
    assert [reader_count(None, users, alone=False) for users in (None, 1, 2, 9)] == [1, 0, 1, 1]
    assert reader_count(None, 1, alone=True) == 1
    assert [reader_count(asked, 1, alone=False) for asked in ("0", "1", "3", "native,confluent")] == [0, 1, 3, 2]


def test_records_that_the_client_would_never_take_are_refused(tmp_path: Path) -> None:
    """Before a directory is made: whoever says how large they are is named, the limit, and the option that lifts it."""
    path = tmp_path / "load.json"
    LoadSettings(run_id=9, value_bytes={"uniform": {"least": 48, "most": 2_000_000}}).write(path)
    (tmp_path / "w.yaml").write_text("value_bytes: 2000000\n")
    for arguments, source in (
        (("--kafka-value-bytes", "2000000"), "--kafka-value-bytes 2000000"),
        (("--kafka-settings", str(path)), f"--kafka-settings {path}"),
        (("--kafka-settings", str(path), "--kafka-value-bytes", "2000000"), "--kafka-value-bytes 2000000"),
        (("--kafka-workload", "w.yaml"), "--kafka-workload w.yaml"),
    ):
        with pytest.raises(SettingsError) as refused:
            settle_options(parse(*arguments))
        assert str(refused.value) == (
            f"{source}: a value of 2000000 bytes is too large for the producer's message.max.bytes 1000000; write "
            "values of at most 999964 bytes, or give --kafka-producer-config message.max.bytes=2000036"
        )
    assert not Path("results").exists()
    options = parse("--kafka-value-bytes", "2000000", "--kafka-producer-config", "message.max.bytes=2000036")
    settle_options(options)
    assert resolve_options(options, None, producers=1).settings.sizes.most == 2_000_000


def test_a_load_that_is_started_with_other_options_is_looked_at_again() -> None:
    """The web form changes options after the process was set up."""
    options = parse()
    settle_options(options)
    options.kafka_value_bytes = 2_000_000
    with pytest.raises(SettingsError, match=r"message\.max\.bytes 1000000"):
        resolve_options(options, None, producers=1)
