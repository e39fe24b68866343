"""The disk's limit, before a run and while it goes on, and the samples of memory and of both clocks."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import pytest

from chaos.commands.preflight import check_disk
from chaos.conductor.resources import EVERY_MS, Resources, disk_problem
from chaos.exits import BadRequest
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import load_seconds, plan, resolve
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage

GB = 1_000_000_000


class _SetClock(ManualClock):
    """A clock whose wall time is set while its monotonic time goes on."""

    set_ms = 0

    def wall_ns(self) -> int:
        return super().wall_ns() + self.set_ms * 1_000_000


class _Disk(MemoryStorage):
    def __init__(self, free_bytes: int) -> None:
        super().__init__()
        self.free = free_bytes

    def free_bytes(self, path: str) -> int:
        return self.free


@dataclass
class _Child:
    name: str
    pid: int
    exit_code: int | None = None


def test_a_run_that_does_not_fit_is_refused_before_anything_starts() -> None:
    """Rate, size, replicas and time make the bytes; one line says how many, how many there are, and the way out."""
    hour = resolve(Asked(seed=1, rate=2000, record_bytes=200, time_limit_s=3600))[0]
    assert 7 * GB < hour.expected_disk_bytes(3600) < 8.5 * GB
    assert check_disk(hour, 3600, _Disk(11 * GB), "/results") == pytest.approx(hour.expected_disk_bytes(3600) / 1e9)
    with pytest.raises(BadRequest, match=r"expects to write 7\.\d GB .* /results has 9\.0 GB; .*--rate.*--out"):
        check_disk(hour, 3600, _Disk(9 * GB), "/results")


def test_the_disk_of_a_load_that_outlasts_its_time_limit() -> None:
    """Faults that do not fit into the time limit make the load longer, and the bytes more."""
    short = resolve(Asked(seed=1, rate=2000, record_bytes=200, time_limit_s=15, faults="all"))[0]
    assert short.expected_disk_bytes(load_seconds(short, plan(short))) > 1.5 * short.expected_disk_bytes(15)


def test_a_disk_that_fills_up_stops_the_run_with_the_reason() -> None:
    """Two gigabytes stay free, whoever used up the rest."""
    assert disk_problem(2 * GB) is None
    assert disk_problem(2 * GB - 1) == "stopped: 2.00 GB of disk are left, and a run leaves 2 GB free"


def test_memory_is_sampled_every_ten_seconds() -> None:
    """One line for all running children; one that is gone is left out."""
    clock, storage = ManualClock(), MemoryStorage()
    storage.makedirs("/run")
    resources = Resources(clock, storage, "/run/resources.jsonl")
    children = [_Child("readers", os.getpid()), _Child("gone", 2**22 + 1)]
    resources.sample_if_due(children, 7 * GB)  # type: ignore[arg-type]
    resources.sample_if_due(children, 6 * GB)  # type: ignore[arg-type]
    clock.advance_ms(EVERY_MS)
    resources.sample_if_due(children, 5 * GB)  # type: ignore[arg-type]
    lines = [json.loads(line) for line in storage.read("/run/resources.jsonl").decode().splitlines()]
    assert [line["free_bytes"] for line in lines] == [7 * GB, 5 * GB]
    assert list(lines[0]["rss_bytes"]) == ["readers"]
    assert lines[0]["rss_bytes"]["readers"] > 1_000_000


def test_a_wall_clock_that_is_set_shows_in_the_samples() -> None:
    """The difference of both clocks stays while time passes, and moves when the wall clock is set or the machine slept.

    A last sample is taken whether one is due or not.
    """
    clock, storage = _SetClock(), _Disk(GB)
    storage.makedirs("/run")
    clock.advance_ms(3_000)
    resources = Resources(clock, storage, "/run/resources.jsonl")
    resources.sample_if_due([], GB)
    clock.advance_ms(EVERY_MS)
    resources.sample_if_due([], GB)
    clock.set_ms = 600_000
    clock.advance_ms(1)
    resources.sample_if_due([], GB)
    resources.sample_last([])
    lines = [json.loads(line) for line in storage.read("/run/resources.jsonl").decode().splitlines()]
    at_start = 1_700_000_000_000
    assert [line["wall_minus_monotonic_ms"] for line in lines] == [at_start, at_start, at_start + 600_000]
