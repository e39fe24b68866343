"""What the web interface is told of a run: always the newest, and never at the run's cost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.conductor.injector import Injector
from chaos.conductor.live import Live
from chaos.conductor.load import LoadStatus
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from chaos.schedules.model import Injection, Schedule
from tests.chaos.fake_cluster import FakeCluster
from verifier.evidence.live import ActiveFault, LiveState, PastFault
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import PhaseSpan

SECOND = 1_000_000_000


class Bench:
    """A run that stands still: what ``Live`` looks at, to be set by hand."""

    def __init__(self, directory: Path, web_port: int | None = 0) -> None:
        self.directory = RunDirectory(directory)
        self.now_ns = 100 * SECOND
        self.notes: list[str] = []
        self.phases: list[PhaseSpan] = []
        self.address: str | None = None
        self.status = LoadStatus(acked=7, unknown=2, failed=1, read=5)
        settings, _ = resolve(Asked(seed=1, web=web_port == 0, web_port=web_port or None))
        clock: Any = SimpleNamespace(monotonic_ns=lambda: self.now_ns, monotonic_ms=lambda: self.now_ns // 1_000_000)
        progress = SimpleNamespace(note=self.notes.append)
        bench: Any = SimpleNamespace(clock=clock, directory=self.directory, progress=progress)
        model = SimpleNamespace(name="run", seed=1, started_ns=90 * SECOND, phases=self.phases)
        record: Any = SimpleNamespace(model=model)
        load: Any = SimpleNamespace(status=self._status, web_address=lambda: self.address)
        schedule = Schedule(1, (Injection(4.0, "kill-leader", 3.0), Injection(9.0, "kill-leader", 3.0)))
        self.live = Live(settings, schedule, bench, record, load)
        storage: Any = None
        self.injector = Injector(FakeCluster(), clock, storage, "", lambda _: None)

    async def _status(self) -> LoadStatus:
        return self.status

    def read(self) -> LiveState:
        return LiveState.read(self.directory.live_json)

    async def a_turn(self) -> None:
        """Let ``run`` come to its first pause."""
        task = asyncio.create_task(self.live.run())
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()


def test_the_state_says_phase_faults_and_the_load(tmp_path: Path) -> None:
    """What was written is read back whole, with the counts of all load processes."""
    bench = Bench(tmp_path)
    bench.phases.append(PhaseSpan("heal", 98 * SECOND))
    bench.injector._lasting[object()] = ActiveFault("cut-link", "b1-b2", 97 * SECOND)  # type: ignore[index]
    bench.injector.past.append(PastFault("kill-leader", "broker 1", 91 * SECOND, 94 * SECOND, "bit", "healed ()"))
    bench.injector.done = bench.injector.effective = 1
    bench.live.chaos(bench.injector, 92_000)
    asyncio.run(bench.a_turn())
    state = bench.read()
    assert state == bench.live.state()
    assert (state.phase, state.phase_since_ns, state.load_since_ns) == ("heal", 98 * SECOND, 92 * SECOND)
    assert (state.planned, state.done, state.effective) == (2, 1, 1)
    assert [each.fault for each in state.active] == ["cut-link"]
    assert [(each.fault, each.effect) for each in state.past] == [("kill-leader", "bit")]
    assert {key: state.load[key] for key in ("acked", "unknown", "failed", "read")} == {
        "acked": 7, "unknown": 2, "failed": 1, "read": 5,
    }  # fmt: skip
    assert state.report.endswith("report.html")


def test_chaos_is_the_warm_up_until_its_first_fault_is_due(tmp_path: Path) -> None:
    """By the schedule, not by a setting: one that is given may begin at once."""
    bench = Bench(tmp_path)
    assert bench.live.state().phase == "start"
    bench.phases.append(PhaseSpan("chaos", 99 * SECOND))
    assert bench.live.state().phase == "warm up"
    bench.live.chaos(bench.injector, 99_000)
    assert (bench.read().phase, bench.read().phase_since_ns) == ("warm up", 99 * SECOND)
    bench.now_ns = 103 * SECOND
    bench.live.write()
    assert (bench.read().phase, bench.read().phase_since_ns) == ("chaos", 103 * SECOND)


def test_the_address_is_said_once_and_the_end_too(tmp_path: Path) -> None:
    """As soon as Locust has told it; without an interface nothing is said of its end."""
    bench = Bench(tmp_path)
    asyncio.run(bench.a_turn())
    bench.live.ended()
    assert bench.notes == []
    bench.address = "http://127.0.0.1:5"
    asyncio.run(bench.a_turn())
    asyncio.run(bench.a_turn())
    bench.live.ended()
    bench.live.ended()
    assert bench.notes[0] == "web interface: http://127.0.0.1:5/?tab=chaos and http://127.0.0.1:5/gapless/"
    assert len(bench.notes) == 2 and str(bench.directory.report_html) in bench.notes[1]


def test_without_a_web_interface_nothing_is_written(tmp_path: Path) -> None:
    """A run that nobody watches has no such file."""
    bench = Bench(tmp_path, web_port=None)
    asyncio.run(asyncio.wait_for(bench.live.run(), 5))
    bench.live.chaos(bench.injector, 99_000)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_costs_the_run_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No error, one line in the log."""
    bench = Bench(tmp_path / "absent")
    bench.live.write()
    bench.live.write()
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the web interface no longer learns what the run does"
    ]


def test_what_is_no_state_is_a_value_error(tmp_path: Path) -> None:
    """Never anything else: whoever shows it has one error to expect."""
    path = tmp_path / "live.json"
    for text in (
        "",
        "[]",
        "{}",
        '{"active": [], "past": []}',
        '{"active": [{"fault": 1}], "past": []}',
        '{"active": 3}',
    ):
        path.write_text(text)
        with pytest.raises(ValueError):  # noqa: PT011
            LiveState.read(path)
