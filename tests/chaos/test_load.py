"""What the conductor hears of the load's processes."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.conductor.load import Load
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from verifier.evidence.run_directory import RunDirectory


class FakeChild:
    """A process that ends when it is asked to, unless it is made to end before."""

    exit_code: int | None = None
    hangs = False

    def __init__(self) -> None:
        self.signals: list[int] = []

    def is_running(self) -> bool:
        return self.exit_code is None

    def interrupt(self) -> None:
        if not self.hangs:
            self.exit_code = 0

    def send_signal(self, signum: int) -> bool:
        self.signals.append(signum)
        return True

    def kill(self) -> None:
        self.signals.append(signal.SIGKILL)
        self.exit_code = -9

    def wait(self, _timeout_s: float) -> int | None:
        return self.exit_code


async def _started(tmp_path: Path, processes: int = 1) -> tuple[Load, dict[str, FakeChild]]:
    children: dict[str, FakeChild] = {}

    def start_program(name: str, *_arguments: Any) -> FakeChild:
        return children.setdefault(name, FakeChild())

    directory = RunDirectory(tmp_path)
    directory.loadgen_dir.mkdir()
    bench: Any = SimpleNamespace(directory=directory, supervisor=SimpleNamespace(start_program=start_program))
    deployment: Any = SimpleNamespace(topology=SimpleNamespace(bootstrap=lambda group: f"{group}:9092"))
    load = Load(resolve(Asked(seed=1, load_processes=processes))[0], bench, deployment, run_id=1)
    await load.start()
    assert set(load.processes) == set(children)
    return load, children


@pytest.mark.parametrize("processes", [1, 3])
def test_what_must_leave_a_history_is_known_beforehand(tmp_path: Path, processes: int) -> None:
    """Each process of the load, the sentinel's and the final readers', before any of them is started."""

    async def body() -> None:
        load, children = await _started(tmp_path, processes)
        declared = load.declared
        assert [each.name for each in declared] == [*children, "sentinel", "final-confluent", "final-kafka-python"]
        writers = [each for each in declared if each.role == "producers"]
        streams = [each.first_stream + number for each in writers for number in range(each.streams)]
        assert streams == list(range(len(streams)))
        assert [each.role for each in declared[-5:]] == ["readers", "readers", "sentinel", "final", "final"]

    asyncio.run(body())


def test_a_process_that_dies_is_told_once(tmp_path: Path) -> None:
    """With its exit status: when it is noticed, or else when all are stopped, and never both."""

    async def body() -> None:
        load, children = await _started(tmp_path)
        assert set(children) == {"producers", "readers-confluent", "readers-native"}
        assert load.died() == []
        assert not load.is_over
        children["producers"].exit_code = -9
        assert load.is_over
        assert load.died() == ["load process producers died (exit status -9)"]
        assert load.died() == []
        children["readers-native"].exit_code = 1
        assert await load.stop() == ["load process readers-native died (exit status 1)"]
        assert load.died() == []

    asyncio.run(body())


def test_a_load_goes_on_while_one_process_of_each_group_lives(tmp_path: Path) -> None:
    """One of three producers' processes killed, or one reader: told, and the rest goes on; all of a kind: over."""

    async def body() -> None:
        load, children = await _started(tmp_path, processes=3)
        assert sorted(children) == [
            *("producers-1", "producers-2", "producers-3", "readers-confluent", "readers-native")
        ]
        children["producers-2"].exit_code = -9
        assert load.died() == ["load process producers-2 died (exit status -9)"]
        assert not load.is_over
        children["readers-confluent"].exit_code = -9
        assert load.died() == ["load process readers-confluent died (exit status -9)"]
        assert not load.is_over
        children["readers-native"].exit_code = -9
        assert load.is_over
        assert await load.stop() == ["load process readers-native died (exit status -9)"]
        assert [children[name].exit_code for name in ("producers-1", "producers-3")] == [0, 0]

    asyncio.run(body())


def test_a_load_that_ends_when_it_is_asked_to_is_no_problem(tmp_path: Path) -> None:
    """Stopped once, whoever asks again."""

    async def body() -> None:
        load, _children = await _started(tmp_path)
        assert await load.stop() == []
        assert await load.stop() == []
        assert load.died() == []

    asyncio.run(body())


def test_a_process_that_does_not_end_says_what_it_is_doing_before_it_is_killed(tmp_path: Path) -> None:
    """Otherwise nothing is left of why it hung; the others end as ever."""

    async def body() -> None:
        load, children = await _started(tmp_path)
        children["readers-native"].hangs = True
        (problem,) = await load.stop()
        assert problem.startswith("load process readers-native did not end in time and was killed")
        assert children["readers-native"].signals == [signal.SIGUSR2, signal.SIGKILL]
        assert not children["producers"].signals

    asyncio.run(body())
