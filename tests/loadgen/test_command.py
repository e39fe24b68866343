"""The load's command lines: one process per group, everything it needs in its arguments and environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from loadgen.command import LOCUST, final_read_command, locust_commands, sentinel_command, settings_path, shares
from loadgen.settings import LoadSettings, SettingsError
from verifier.evidence.run_directory import RunDirectory


def run_directory(path: Path) -> RunDirectory:
    return RunDirectory(path).prepare()


def test_producers_and_each_client_of_readers_have_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own bootstrap, user class and history; the user's own LOCUST_ variables do not leak in."""
    monkeypatch.setenv("LOCUST_RUN_TIME", "1s")
    run = run_directory(tmp_path)
    settings = LoadSettings(
        run_id=1,
        producers_bootstrap="h:1",
        readers_bootstrap="h:2",
        producers=3,
        flush_timeout_s=5,
        readers=("native", "confluent", "native"),
    )
    producers, native, confluent = commands = locust_commands(settings, run)
    assert LoadSettings.read(settings_path(run)) == settings
    assert [command.name for command in commands] == ["producers", "readers-native", "readers-confluent"]
    for command, user, host, count, readers in (
        (producers, "ProducerUser", "h:1", "3", "0"),
        (native, "ReaderUser", "h:2", "2", "native,native"),
        (confluent, "ReaderUser", "h:2", "1", "confluent"),
    ):
        assert command.argv[command.argv.index("--kafka-readers") + 1] == readers
        assert command.argv[:3] == [sys.executable, "-m", LOCUST]
        assert user in command.argv
        assert command.argv[command.argv.index("--host") + 1] == host
        assert command.argv[command.argv.index("--users") + 1] == count
        assert command.argv[command.argv.index("--stop-timeout") + 1] == "15"
        assert command.argv[command.argv.index("--exit-code-on-error") + 1] == "0"
        assert command.env["LOCUST_KAFKA_PROCESS"] == command.name
        assert command.env["LOCUST_KAFKA_RUN_DIRECTORY"] == str(tmp_path)
        assert "LOCUST_RUN_TIME" not in command.env
        assert command.stop_timeout_s > 15


def test_memory_is_shared_by_threads_unless_the_user_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """glibc's arenas, one for each thread of librdkafka, are what made a load process grow: two are allowed."""
    settings = LoadSettings(run_id=1, producers_bootstrap="h:1", readers_bootstrap="h:2")
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert {command.env["MALLOC_ARENA_MAX"] for command in locust_commands(settings, run_directory(tmp_path))} == {"2"}
    monkeypatch.setenv("MALLOC_ARENA_MAX", "8")
    assert {command.env["MALLOC_ARENA_MAX"] for command in locust_commands(settings, run_directory(tmp_path))} == {"8"}


def test_producers_are_shared_by_processes(tmp_path: Path) -> None:
    """Each has its own name, its own streams and the same settings; no stream is missing and none has two."""
    settings = LoadSettings(
        run_id=1, producers_bootstrap="h:1", readers_bootstrap="h:2", producers=7, processes=3, first_stream=10
    )
    commands = locust_commands(settings, run_directory(tmp_path))
    names = ["producers-1", "producers-2", "producers-3", "readers-confluent", "readers-native"]
    assert [command.name for command in commands] == names
    streams: list[int] = []
    for command in commands[:3]:
        first = int(command.argv[command.argv.index("--kafka-first-stream") + 1])
        streams += range(first, first + int(command.argv[command.argv.index("--users") + 1]))
        assert command.env["LOCUST_KAFKA_PROCESS"] == command.name
    assert streams == list(range(10, 17))
    assert shares(settings.with_changes({"processes": 9}))[-1] == ("producers-7", 16, 1)


def test_a_web_interface_is_the_producers_and_this_machines(tmp_path: Path) -> None:
    """It starts the load by itself, listens on the loopback alone, and the readers have none."""
    run = run_directory(tmp_path)
    settings = LoadSettings(run_id=1, producers_bootstrap="h:1", readers_bootstrap="h:2")
    producers, *readers = locust_commands(settings, run, web_port=8089)
    assert all("--headless" in each.argv and "--web-port" not in each.argv for each in readers)
    assert "--headless" not in producers.argv and "--autostart" in producers.argv
    assert producers.argv[producers.argv.index("--web-host") + 1] == "127.0.0.1"
    assert producers.argv[producers.argv.index("--web-port") + 1] == "8089"
    assert all("--headless" in each.argv for each in locust_commands(settings, run))


def test_a_group_without_users_has_no_process(tmp_path: Path) -> None:
    """No readers, no readers' process; and then no address of theirs is needed."""
    settings = LoadSettings(run_id=1, producers_bootstrap="h:1", readers=())
    assert [command.name for command in locust_commands(settings, run_directory(tmp_path))] == ["producers"]


def test_a_group_without_an_address_is_refused(tmp_path: Path) -> None:
    """Said before anything is started."""
    with pytest.raises(SettingsError, match="readers_bootstrap"):
        locust_commands(LoadSettings(run_id=1, producers_bootstrap="h:1"), run_directory(tmp_path))


def test_the_final_tools_have_their_own_histories(tmp_path: Path) -> None:
    """Settings, address, deadline, client and history of both tools."""
    run = run_directory(tmp_path)
    sentinel = sentinel_command(run, "h:1", 30)
    final = final_read_command(run, "h:2", '{"0": 3}', 60, "kafka-python")
    assert sentinel[:3] == [sys.executable, "-m", "loadgen.sentinel"]
    assert sentinel[sentinel.index("--history") + 1] == str(run.history("sentinel"))
    assert final[final.index("--history") + 1] == str(run.history("final-kafka-python"))
    assert final[final.index("--through") + 1] == '{"0": 3}'
    assert final[final.index("--client") + 1] == "kafka-python"
