"""What a fault of a broker's machine explains: that its broker ended, and that its log says what the disk did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.faults.catalogue import FAULTS
from chaos.faults.elect_unclean import ElectUnclean
from chaos.faults.failing_disk import FailingDisk
from chaos.faults.kill_several import KillSeveral
from chaos.faults.lost_files import LostFiles
from chaos.faults.memory_pressure import MemoryPressure
from chaos.faults.power_loss import PowerLoss
from cluster.seams import out_of_memory
from tests.support.stories import clean
from tests.verifier.test_completeness import KILL, children, incomplete
from tests.verifier.test_verdict import a_run, closing, facts
from verifier.closing.closing import LogAlarm, gather
from verifier.completeness.killed import ABORTED, FAILED, HALTED, KILLED
from verifier.evidence.fault_kinds import (
    DISK_ERRORS,
    FAILING_DISKS,
    HALTING,
    HALTS,
    KILLING_MACHINES,
    KILLING_SEVERAL,
    NO_MEMORY,
    UNCLEAN_ORDER,
)
from verifier.evidence.run_model import ChildProcess
from verifier.witness.effectiveness import Injected
from verifier.witness.witness import spans

BROKEN = replace(
    KILL,
    fault="disk-error",
    target="broker 2, leader of t-0, all",
    probe={"broker": 2, "pid": 102, "dead": True, "disk_error": "EIO"},
)
LINE = "2026-01-01 00:00:00,000 CRITICAL cluster.broker.disk_failures: it failed: [Errno {}] {}: 'x'"


def ended(exit_code: int) -> list[ChildProcess]:
    """Broker 2 ended by itself or by a signal, and was started again."""
    return [*children(broker_2=exit_code), ChildProcess("broker-2", 300, 2.0, 0)]


def test_the_kinds_are_those_of_chaos() -> None:
    """A fault that is added there, and ends its broker, is known here."""
    assert {name for name, fault in FAULTS.items() if issubclass(fault, FailingDisk)} == FAILING_DISKS
    assert {name for name, fault in FAULTS.items() if issubclass(fault, PowerLoss | LostFiles)} == KILLING_MACHINES
    assert {name for name, fault in FAULTS.items() if issubclass(fault, KillSeveral)} == KILLING_SEVERAL
    assert {MemoryPressure.name} == HALTING
    assert (HALTED, f"{HALTS}\n".encode()) == (out_of_memory.STATUS, out_of_memory.LINE)
    assert ElectUnclean.name == UNCLEAN_ORDER and ElectUnclean.by_name_alone


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_only_a_disk_that_failed_explains_a_broker_that_ended_by_itself(fault: str) -> None:
    """With its very process on record; and it explains no signal."""
    run = a_run(children=ended(FAILED), faults_requested=[fault])
    found = incomplete(run, facts(), closing(replace(BROKEN, fault=fault)))
    unexplained = any("exit status 1, and no fault had killed it" in each.reason for each in found)
    assert unexplained is (fault not in FAILING_DISKS)
    run = a_run(children=ended(KILLED), faults_requested=["disk-error"])
    found = incomplete(run, facts(), closing(BROKEN))
    assert any("exit status -9, and no fault had killed it" in each.reason for each in found)


@pytest.mark.parametrize(
    "changes", [{"pid": 103}, {"dead": False}, {"broker": 1}], ids=["another process", "alive", "another broker"]
)
def test_a_disk_of_another_process_explains_nothing(changes: dict[str, object]) -> None:
    """A failing disk explains the end of its own process only, as a kill does."""
    fault = replace(BROKEN, probe={**BROKEN.probe, **changes}, target=f"broker {changes.get('broker', 2)}")
    run = a_run(children=ended(FAILED), faults_requested=["disk-error"])
    assert any("no fault had killed it" in each.reason for each in incomplete(run, facts(), closing(fault)))


def test_a_log_may_say_what_its_own_disk_was_made_to_do() -> None:
    """That error, of that broker; whatever else stands in its log is an error as ever."""
    run = a_run(children=ended(FAILED), faults_requested=["disk-error"])

    def reasons(*alarms: LogAlarm) -> list[str]:
        return [each.reason for each in incomplete(run, facts(), closing(BROKEN, alarms=alarms))]

    assert reasons(LogAlarm("nodes/2/broker.log", 3, "x", "EIO")) == []
    for alarm in (
        LogAlarm("nodes/2/broker.log", 3, "x"),
        LogAlarm("nodes/2/broker.log", 3, "x", "ENOSPC"),
        LogAlarm("nodes/1/broker.log", 3, "x", "EIO"),
        LogAlarm("nodes/22/broker.log", 3, "x", "EIO"),
        LogAlarm("proxy.log", 3, "x", "EIO"),
    ):
        assert len(reasons(alarm)) == 1, alarm


def test_errors_of_the_disk_are_told_from_others(tmp_path: Path) -> None:
    """Line by line: those that name what a disk failed with, and the rest."""
    story = clean()
    directory = story.write(tmp_path)
    lines = [
        LINE.format(28, DISK_ERRORS["ENOSPC"]),
        LINE.format(5, DISK_ERRORS["EIO"]),
        LINE.format(5, DISK_ERRORS["EIO"]),
        "2026-01-01 00:00:00,000 ERROR cluster.log: something else",
    ]
    (tmp_path / "nodes/1/broker.log").write_text("\n".join(lines), encoding="utf-8")
    found = {alarm.known: alarm.count for alarm in gather(directory, story.model()).alarms}
    assert found == {"ENOSPC": 1, "EIO": 2, "": 1}


@pytest.mark.parametrize("fault", sorted(KILLING_MACHINES | FAILING_DISKS | HALTING))
def test_a_broker_that_ended_acknowledges_nothing_in_ignorance(fault: str) -> None:
    """It is not cut off and alive, and holds back nothing that a producer sent."""
    (span,) = spans([replace(BROKEN, fault=fault)])
    assert not span.blinded(2, span.start_ns, span.end_ns)
    assert not span.holds_requests


PRESSED = replace(BROKEN, fault="memory-pressure", probe={"broker": 2, "pid": 102, "dead": True, "halts": 1})


@pytest.mark.parametrize("status", [HALTED, ABORTED])
@pytest.mark.parametrize("fault", ["memory-pressure", "disk-error", "kill-leader"])
def test_only_a_lack_of_memory_explains_a_broker_that_halted(fault: str, status: int) -> None:
    """With its very process on record, by either of the statuses that such an end has."""
    run = a_run(children=ended(status), faults_requested=[fault])
    found = incomplete(run, facts(), closing(replace(PRESSED, fault=fault)))
    unexplained = any(f"exit status {status}, and no fault had killed it" in each.reason for each in found)
    assert unexplained is (fault != "memory-pressure")


def test_a_log_may_say_that_its_broker_got_no_more_memory() -> None:
    """That of the broker that was kept from it; in another one, or without the fault, it is an error as ever."""

    def reasons(alarm: LogAlarm, *faults: Injected) -> list[str]:
        run = a_run(children=ended(HALTED), faults_requested=["memory-pressure"])
        return [each.reason for each in incomplete(run, facts(), closing(*faults, alarms=(alarm,)))]

    said = LogAlarm("nodes/2/broker.log", 1, "x", NO_MEMORY)
    assert reasons(said, PRESSED) == []
    assert any(
        "nodes/1/broker.log has an error" in each for each in reasons(replace(said, path="nodes/1/broker.log"), PRESSED)
    )
    assert any("nodes/2/broker.log has an error" in each for each in reasons(said))


def test_what_a_broker_says_at_its_halt_is_told_from_other_errors(tmp_path: Path) -> None:
    """By the words of the line in its log."""
    story = clean()
    directory = story.write(tmp_path)
    line = f"2026-01-01 00:00:00,000 CRITICAL cluster.seams.out_of_memory: {HALTS}: MemoryError() at log.py:7 append\n"
    (tmp_path / "nodes/1/broker.log").write_text(line, encoding="utf-8")
    assert [(each.known, each.count) for each in gather(directory, story.model()).alarms] == [(NO_MEMORY, 1)]
