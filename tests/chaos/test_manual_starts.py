"""``gapless start``: a broker of a cluster that is up runs again, or the one who asked is told why not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from chaos.commands import start
from chaos.commands.main import run_command
from chaos.conductor.deployed import Deployed
from chaos.conductor.deployment import Deployment
from chaos.conductor.manual_faults import ByHand
from chaos.conductor.observer import Observer
from chaos.conductor.starting import StartFailure
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from chaos.links import LinkError
from cluster.process.supervisor import Child, Supervisor
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from tests.chaos.fake_cluster import FakeProcess
from tests.chaos.test_manual_faults import Handled, answered, asked, by_hand
from verifier.evidence.run_directory import RunDirectory


def test_a_broker_that_died_is_started_again(tmp_path: Path) -> None:
    """On request, whatever killed it; one that runs is left alone, and one that does not exist is refused."""

    async def work(handled: Handled, hand: ByHand) -> None:
        handled.cluster.processes[2].running = False
        assert await answered(tmp_path, asked(start=2)) == [{"end": "started", "text": "broker 2 runs"}]
        assert handled.is_running(2)
        assert await answered(tmp_path, asked(start=2)) == [{"end": "started", "text": "broker 2 was running"}]
        for other in ("2", True, 2.0, None):
            (end,) = await answered(tmp_path, asked(start=other))
            assert end["end"] == "refused"
        (end,) = await answered(tmp_path, asked(start=9))
        assert end == {"end": "refused", "text": "the cluster has no broker 9, it has 1, 2, 3"}

    assert by_hand(tmp_path, work) == []


def test_a_broker_that_does_not_come_up_is_said_not_to(tmp_path: Path) -> None:
    """With the reason; it may be started again later."""

    async def work(handled: Handled, hand: ByHand) -> None:
        handled.cluster.processes[2].running = False
        handled.failure = StartFailure("broker 2 ended (exit status 1)")
        (end,) = await answered(tmp_path, asked(start=2))
        assert end == {"end": "not started", "text": "broker 2 ended (exit status 1)"}
        handled.failure = None
        (end,) = await answered(tmp_path, asked(start=2))
        assert end["end"] == "started"

    by_hand(tmp_path, work)


class SlowToStart(Deployment):
    """A broker's process is there at once, and serves when it is told to."""

    served: asyncio.Event
    failure: Exception | None = None

    async def _spawn_broker(self, broker_id: int) -> None:
        self._brokers[broker_id] = cast("Child", FakeProcess(22))

    async def _start_broker(self, broker_id: int) -> None:
        await self.served.wait()
        if self.failure is not None:
            raise self.failure


@contextlib.contextmanager
def slow_to_start(directory: Path) -> Iterator[tuple[SlowToStart, Deployed, list[int]]]:
    """With the cluster as requests see it, and the pids that were told."""
    settings, _ = resolve(Asked(seed=1, brokers=1, replication_factor=1, faults="none"))
    observer, run = Observer(AsyncioTransport(), SystemClock(), settings.topic), RunDirectory(directory)
    with Supervisor(str(directory), lambda _: None) as supervisor:
        deployment, told = SlowToStart(settings, run, supervisor, observer), list[int]()
        deployment.served = asyncio.Event()
        deployment._brokers[1] = cast("Child", FakeProcess(11))
        cluster = Deployed(
            *(deployment, observer, run, 2_000),
            behind_links=False,
            started=lambda: told.append(deployment.process(1).pid),
        )
        yield deployment, cluster, told


def test_a_broker_that_is_being_started_does_not_run_yet(tmp_path: Path) -> None:
    """Its process is there, but may not come up: a second request waits for the same start. Before either is answered,
    the files that name the process are true again."""

    async def main() -> None:
        with slow_to_start(tmp_path) as (deployment, cluster, told):
            cast("FakeProcess", deployment.process(1)).running = False
            first = asyncio.create_task(cluster.start(1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert deployment.process(1).pid == 22 and not cluster.is_running(1)
            second = asyncio.create_task(cluster.start(1))
            await asyncio.sleep(0)
            assert (first.done(), second.done(), told) == (False, False, [])
            deployment.served.set()
            await asyncio.gather(first, second)
            assert cluster.is_running(1) and set(told) == {22}

    asyncio.run(main())


@pytest.mark.parametrize("failure", [LinkError("the proxy is gone"), OSError("no process can be started")])
def test_whatever_keeps_a_broker_from_starting_is_told(failure: Exception, tmp_path: Path) -> None:
    """Who asked gets an answer, and not only the end of the connection."""

    async def main() -> None:
        with slow_to_start(tmp_path) as (deployment, cluster, told):
            deployment.served.set()
            deployment.failure = failure
            with pytest.raises(StartFailure, match=str(failure)):
                await cluster.start(1)
            assert told == []

    asyncio.run(main())


@pytest.mark.parametrize("answers", [[], [{"end": "cut short", "text": "cut short, and healed"}]])
def test_a_start_in_a_cluster_that_stops_says_so(
    answers: list[dict[str, object]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Nothing was healed, and no log tells more; the cluster may have gone without another word, too."""
    monkeypatch.setattr(start, "running", lambda _: object())
    monkeypatch.setattr(start, "ask", lambda *_: iter(answers))
    assert run_command(["start", "2", "--data", str(tmp_path)]) == 255
    assert capsys.readouterr().err == f"gapless: the cluster in {tmp_path} stopped before broker 2 ran\n"
