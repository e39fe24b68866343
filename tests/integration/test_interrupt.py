"""Ctrl-C, SIGTERM and kill -9 of a run, also while a broker is stopped: an honest outcome, and nothing left behind."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cluster.process.processes import until
from tests.support.faults import of_zookeeper
from tests.support.leftovers import Place
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

#: On a machine that does much else; a quiet one needs a tenth.
LONG_S = 240.0
#: The promise of DEVELOPERS.md ("Processes").
AFTER_KILL_S = 10.0
PAUSE = ("run", "--time-limit", "40", "--rate", "100", "--faults", "pause-leader", "--seed", "5")


def _until_paused(place: Place) -> None:
    """Wait until a broker is stopped in the middle of the chaos."""
    place.wait_for("fault pause-leader", LONG_S)
    assert until(lambda: any(each.status() == "stopped" for each in place.processes()), 20.0)
    # The finder sees what there is: conductor, warden, ZooKeeper, proxy, three brokers, producers, readers.
    assert len(place.processes()) >= 9
    assert len(place.ports) >= 15


def _verdict(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place.directory / "results" / "latest" / "verdict.json").read_text())
    return found


@pytest.mark.full
def test_two_interrupts_while_a_broker_is_paused(tmp_path: Path) -> None:
    """The first heals and stops; the second, in the verification, skips it: unknown, exit 2, nothing left."""
    require("java")
    with Place(tmp_path) as place:
        run = place.start(*PAUSE)
        _until_paused(place)
        run.send_signal(signal.SIGINT)
        place.wait_for("verify: Spark", LONG_S)
        run.send_signal(signal.SIGINT)
        assert run.wait(30) == 2, place.err
        place.assert_nothing_left(within_s=1.0)
        assert place.out.startswith("RESULT unknown seed=5 ")
        assert "Traceback" not in place.err
        assert _verdict(place)["verdict"] == "unknown"


@pytest.mark.full
def test_kill_9_while_a_broker_is_paused(tmp_path: Path) -> None:
    """Within 10 s of the conductor's death no process, port or temporary directory is left."""
    require("java")
    with Place(tmp_path) as place:
        run = place.start(*PAUSE)
        _until_paused(place)
        run.kill()
        run.wait()
        place.assert_nothing_left(within_s=AFTER_KILL_S)


@pytest.mark.full
@pytest.mark.parametrize("fault", [*of_zookeeper(), "rolling-restart"])
def test_kill_9_while_more_is_down(tmp_path: Path, fault: str) -> None:
    """A stopped ZooKeeper, one that is dead, a broker in its controlled shutdown: nothing of it is left either."""
    require("java")
    with Place(tmp_path) as place:
        run = place.start("run", "--time-limit", "40", "--faults", fault, "--seed", "5")
        place.wait_for(f"fault {fault}", LONG_S)
        if fault == "pause-zookeeper":
            assert until(lambda: any(each.status() == "stopped" for each in place.processes()), 20.0)
        place.processes()
        run.kill()
        run.wait()
        place.assert_nothing_left(within_s=AFTER_KILL_S)


@pytest.mark.full
@pytest.mark.parametrize("fault", [*of_zookeeper(), "rolling-restart"])
def test_an_interrupt_while_more_is_down(tmp_path: Path, fault: str) -> None:
    """Ctrl-C then: what is down comes up again, every broker stops cleanly, what there is gets judged."""
    require("java")
    with Place(tmp_path) as place:
        run = place.start("run", "--time-limit", "40", "--faults", fault, "--seed", "5")
        place.wait_for(f"fault {fault}", LONG_S)
        place.processes()
        run.send_signal(signal.SIGINT)
        assert run.wait(LONG_S) == 2, place.err
        place.assert_nothing_left(within_s=1.0)
        assert place.out.startswith("RESULT unknown seed=5 ")
        assert "did not stop cleanly" not in place.err


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_interrupt_judges_what_there_is(tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM does what Ctrl-C does: heals, reads back, verifies what there is, and never calls it valid."""
    require("java")
    with Place(tmp_path) as place:
        run = place.start(*PAUSE)
        _until_paused(place)
        run.send_signal(number)
        assert run.wait(LONG_S) == 2, place.err
        place.assert_nothing_left(within_s=1.0)
        assert place.out.startswith("RESULT unknown seed=5 ")
        assert any("interrupted in phase 'chaos'" in str(reason) for reason in _verdict(place)["reasons"])
        assert "interrupted before the verdict" not in place.err
        verdict = _verdict(place)
        assert verdict["stats"]["read"] >= verdict["stats"]["acked"] > 0
        assert not [name for name, check in verdict["checks"].items() if check["withheld"]]


@pytest.mark.full
def test_an_interrupted_run_shows_what_was_lost_until_then(tmp_path: Path) -> None:
    """Its evidence is whole, so a loss is found in it: invalid, exit 1."""
    require("java")
    with Place(tmp_path) as place:
        run = place.start(*PAUSE, "--acks", "1", "--defect", "lose-acked:0.2")
        _until_paused(place)
        run.send_signal(signal.SIGINT)
        assert run.wait(LONG_S) == 1, place.err
        place.assert_nothing_left(within_s=1.0)
        assert place.out.startswith("RESULT invalid seed=5 ") and "lost-write" in place.out


def test_two_terminations_at_the_start(tmp_path: Path) -> None:
    """SIGTERM twice before the cluster is up: no verification, unknown, exit 2, nothing left."""
    require("java")
    with Place(tmp_path) as place:
        run = place.start(*PAUSE)
        place.wait_for("s  start", LONG_S)
        run.send_signal(signal.SIGTERM)
        place.wait_for("interrupted", LONG_S)
        run.send_signal(signal.SIGTERM)
        assert run.wait(LONG_S) == 2, place.err
        place.assert_nothing_left(within_s=1.0)
        assert place.out.startswith("RESULT unknown seed=5 ")
        assert "verify: Spark" not in place.err
        assert "Traceback" not in place.err


@pytest.mark.full
@pytest.mark.parametrize("moment", range(20))
def test_an_interrupt_at_any_moment(tmp_path: Path, moment: int) -> None:
    """Wherever the run is, Ctrl-C ends it with a RESULT line and leaves nothing; every other time it comes twice."""
    require("java")
    after_s = Random(moment).uniform(0.0, 40.0)
    with Place(tmp_path) as place:
        run = place.start("run", "--time-limit", "12", "--faults", "pause-leader,kill-leader", "--seed", str(moment))
        place.wait_for("s  run ", LONG_S)
        until(lambda: run.poll() is not None, after_s)
        place.processes()
        run.send_signal(signal.SIGINT)
        if moment % 2:
            until(lambda: run.poll() is not None, 1.0)
            run.send_signal(signal.SIGINT)
        status = run.wait(LONG_S)
        place.assert_nothing_left(within_s=1.0)
        word = {0: "valid", 1: "invalid", 2: "unknown"}[status]
        assert place.out.startswith(f"RESULT {word} seed={moment} "), place.err
        assert "Traceback" not in place.err
        # Only a run that had all of its evidence when the signal came may be valid.
        before, interrupted, _ = place.err.partition("interrupted")
        assert word == "unknown" or not interrupted or "evidence is complete" in before
