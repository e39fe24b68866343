"""Which process may have ended otherwise than it was asked to: one that a fault on record killed, then and there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.faults.catalogue import FAULTS
from chaos.faults.kill import Kill
from chaos.faults.kill_several import KillSeveral
from tests.verifier.test_completeness import KILL, children, incomplete
from tests.verifier.test_verdict import a_run, closing, facts
from verifier.anomalies import BY_NAME
from verifier.closing.closing import Closing
from verifier.completeness.killed import kills
from verifier.doubts import HISTORIES
from verifier.evidence.run_model import ChildProcess, RunModel
from verifier.witness.effectiveness import Injected

SECOND = 1_000_000_000
#: The pid of ``producer-1`` in a made-up run, and when its last row was written.
PRODUCER = next(child.pid for child in a_run().children if child.name == "producer-1")
LAST = next(each.last_ns for each in closing().accounts if each.process == "producer-1")

#: A fault that killed it a moment after its last row.
DEATH = Injected(
    "kill-producers", "producer-1", LAST + SECOND // 4, LAST + 9 * SECOND, True, False,
    {"pid": PRODUCER, "dead": True}, 0, LAST + 5 * SECOND, True, probed_ns=LAST + SECOND,
)  # fmt: skip


def torn(fault: Injected | None = DEATH, *, series_ns: int = LAST, **changes: Any) -> Closing:
    """The history of ``producer-1`` has no end, and so goes its live series."""
    known = closing()
    accounts = tuple(
        replace(each, state="torn", totals={}, unanswered=("s1/9 without an outcome",), **changes)
        if each.process == "producer-1"
        else each
        for each in known.accounts
    )
    series = {**known.series, "producer-1": replace(known.series["producer-1"], time_ns=series_ns)}
    return closing(*([] if fault is None else [fault]), accounts=accounts, series=series)


def killed_run(exit_code: int = -9, kind: str = "kill-producers") -> RunModel:
    return a_run(children=children(producer_1=exit_code), faults_requested=[kind])


def test_the_torn_tail_of_a_process_that_a_fault_killed_is_legal() -> None:
    """What it had reserved is unknown, not a phantom. Without the fault on record, its end is no evidence."""
    assert incomplete(killed_run(), facts(), torn()) == []
    assert incomplete(killed_run(), facts(), torn(None)) != []
    assert incomplete(killed_run(0), facts(), torn()) != []


NOT_KILLED: dict[str, tuple[Injected, str]] = {
    "a fault that kills nothing": (replace(DEATH, fault="cut-link"), "no fault on record killed"),
    "a fault that kills brokers": (replace(DEATH, fault="kill-leader"), "no fault on record killed"),
    "a fault of ZooKeeper": (replace(DEATH, fault="restart-zookeeper"), "no fault on record killed"),
    "a fault that was skipped": (replace(DEATH, skipped=True), "no fault on record killed"),
    "a fault that did not bite": (replace(DEATH, effective=False), "no fault on record killed"),
    "another process": (replace(DEATH, probe={"pid": PRODUCER + 1, "dead": True}), "no fault on record killed"),
    "a process named without its pid": (
        replace(DEATH, probe={"process": "producer-1", "dead": True}), "no fault on record killed"),
    "a process with its pid by another name": (
        replace(DEATH, probe={"pid": PRODUCER, "process": "reader-1", "dead": True}), "no fault on record killed"),
    "a fault that no one knows": (replace(DEATH, fault="kill-anything"), "no fault on record killed"),
    "a process that lived on": (replace(DEATH, probe={"pid": PRODUCER, "dead": False}), "no fault on record killed"),
    "a broker": (replace(DEATH, probe={"pid": PRODUCER, "dead": True, "broker": 1}), "no fault on record killed"),
    "long before": (
        replace(DEATH, start_ns=LAST - 9 * SECOND, probed_ns=LAST - 8 * SECOND, healed_ns=LAST - 7 * SECOND),
        "ends 8.0 s after kill-producers had killed its process"),
    "long after": (
        replace(DEATH, start_ns=LAST + 60 * SECOND, probed_ns=LAST + 61 * SECOND, healed_ns=LAST + 62 * SECOND),
        "ends 60.0 s before kill-producers killed its process"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_KILLED)
def test_another_fault_or_another_time_explains_no_torn_tail(name: str) -> None:
    """The fault is one that kills such a process, it bit, it names the process, and the history ends with it."""
    fault, reason = NOT_KILLED[name]
    reasons = [each.reason for each in incomplete(killed_run(kind=fault.fault), facts(), torn(fault))]
    assert [each for each in reasons if reason in each], reasons


@pytest.mark.parametrize(("role", "is_legal"), [("producers", True), ("members", False), ("final", False)])
def test_no_fault_cuts_the_history_of_a_member_short(role: str, is_legal: bool) -> None:
    """Whatever its process is called: where a member's history ends early, ``group-completeness`` is not judged."""
    run = killed_run()
    own = [replace(each, role=role) if each.name == "producer-1" else each for each in run.evidence.processes]
    run = replace(run, evidence=replace(run.evidence, processes=own))
    doubts = [each for each in incomplete(run, facts(), torn()) if "no fault on record killed" in each.reason]
    assert [each.blinds for each in doubts] == ([] if is_legal else [HISTORIES])
    assert BY_NAME["group-completeness"].needs & HISTORIES


def test_a_process_that_was_killed_counts_nothing_afterwards() -> None:
    """A history that was cut where a fault is on record still has a series that goes on."""
    reasons = [each.reason for each in incomplete(killed_run(), facts(), torn(series_ns=LAST + 20 * SECOND))]
    assert reasons == ["the live series of producer-1 continues for 19.0 s after kill-producers had killed it"]


def test_a_series_that_was_cut_before_the_death_tells_too_little() -> None:
    """What its process counted last is what its history is held against: it must be known up to the death."""
    reasons = [each.reason for each in incomplete(killed_run(), facts(), torn(series_ns=LAST - 60 * SECOND))]
    assert reasons == ["the live series of producer-1 ends 60.2 s before kill-producers killed its process"]


@pytest.mark.parametrize(
    ("word", "name"),
    [("acknowledged", "total_acked"), ("failed", "total_failed"), ("of unknown outcome", "total_unknown")],
)
def test_a_torn_history_has_what_its_process_had_counted(word: str, name: str) -> None:
    """Rows that were flushed before the last point are there: without an end no totals tell that some are missing."""
    whole = torn()
    point = whole.series["producer-1"]
    assert incomplete(killed_run(), facts(), replace(whole, before_last={"producer-1": point})) == []
    more = replace(point, **{name: getattr(point, name) + 1})
    [told] = incomplete(killed_run(), facts(), replace(whole, before_last={"producer-1": more}))
    assert told.reason == (
        f"the history producer-1.arrow has {getattr(point, name)} values {word}, and its process had counted "
        f"{getattr(point, name) + 1} more than a second before kill-producers killed it"
    )
    assert told.blinds == HISTORIES


@pytest.mark.parametrize(("process", "fault"), [("reader-1", "kill-readers"), ("producer-1", "kill-producers")])
def test_who_was_killed_need_not_have_done_its_part(process: str, fault: str) -> None:
    """A reader that was killed reads no more, and streams of a killed producer end; one that closed its history has no
    such excuse."""
    known = closing()
    pid = next(child.pid for child in a_run().children if child.name == process)
    last_ns = next(each.last_ns for each in known.accounts if each.process == process)
    death = replace(
        DEATH, fault=fault, target=process, probe={"pid": pid, "dead": True},
        start_ns=last_ns + SECOND // 4, probed_ns=last_ns + SECOND,
    )  # fmt: skip
    run = a_run(children=children(**{process.replace("-", "_"): -9}), faults_requested=[fault])

    def reasons(state: str) -> list[str]:
        accounts = tuple(
            replace(each, state=state, totals={}, read={}, acked={}) if each.process == process else each
            for each in known.accounts
        )
        series = {**known.series, process: replace(known.series[process], time_ns=last_ns)}
        found = incomplete(run, facts(), closing(death, accounts=accounts, series=series))
        return [
            each.reason for each in found if "live" in each.reason or "records were acknowledged, of" in each.reason
        ]

    assert reasons("torn") == []
    assert reasons("closed") != []


@pytest.mark.parametrize("steps", [3, "none", {"pid": 102}, [7], [None], None])
def test_a_probe_of_another_shape_names_nobody(steps: object) -> None:
    """It is no evidence, and no error either."""
    rolled = replace(KILL, fault="rolling-restart", probe={"steps": steps})
    run = a_run(children=killed_broker(), faults_requested=["rolling-restart"])
    assert any("no fault had killed it" in each.reason for each in incomplete(run, facts(), closing(rolled)))


def killed_broker() -> list[ChildProcess]:
    """Broker 2 ended by a signal, and was started again."""
    return [*children(broker_2=-9), ChildProcess("broker-2", 300, 2.0, 0)]


def test_a_broker_that_a_fault_killed_may_end_by_a_signal() -> None:
    """Its probe names the pid; also in a step of a fault that stopped several, and not this one in time."""
    run = a_run(children=killed_broker(), faults_requested=["kill-leader", "rolling-restart", "kill-majority"])

    def reasons(fault: str, **probe: object) -> list[str]:
        broken = replace(KILL, fault=fault, probe=probe, target="broker 2" if "broker" in probe else KILL.target)
        return [each.reason for each in incomplete(run, facts(), closing(broken))]

    assert reasons("kill-leader", pid=102, dead=True, broker=2) == []
    assert reasons("rolling-restart", steps=[{"pid": 101, "in_time": True}, {"pid": 102, "in_time": False}]) == []
    assert reasons("kill-majority", steps=[{"pid": 101, "dead": True}, {"pid": 102, "dead": True}]) == []
    for fault, probe in (
        ("kill-leader", {"pid": 103, "dead": True}),
        ("kill-leader", {"pid": 102}),
        ("kill-leader", {"pid": 102, "dead": True, "broker": 1}),
        ("rolling-restart", {"steps": [{"pid": 102, "in_time": True}]}),
        ("rolling-restart", {"pid": 102, "dead": True}),
        ("kill-majority", {"steps": [{"pid": 102, "dead": False}]}),
        ("kill-majority", {"steps": [{"pid": 102, "in_time": False}]}),
    ):
        assert any("no fault had killed it" in each for each in reasons(fault, **probe)), (fault, probe)


def test_a_kill_that_the_cluster_did_not_note_killed_all_the_same() -> None:
    """Whether it bit is another question: the process is gone by it."""
    run = a_run(children=killed_broker(), faults_requested=["kill-leader"])
    assert incomplete(run, facts(), closing(replace(KILL, effective=False))) == []


@pytest.mark.parametrize("name", FAULTS)
def test_the_verifier_knows_which_faults_kill_brokers(name: str) -> None:
    """Those that share the catalogue's kill, and the restart that kills what does not stop in time."""
    assert kills(name, "broker-1") is (issubclass(FAULTS[name], Kill | KillSeveral) or name == "rolling-restart")
    assert kills(name, "zookeeper") is (name == "restart-zookeeper")
    assert kills(name, "producer-1") is (name == "kill-producers")
    assert kills(name, "readers-native") is (name == "kill-readers")


@pytest.mark.parametrize(
    ("name", "process"),
    [("producer_1", "producer-1"), ("reader_1", "reader-1"), ("sentinel", "sentinel"), ("final_read_1", "final-1")],
)
@pytest.mark.parametrize("status", [1, -9, None])
def test_a_process_of_the_load_ends_with_status_0(name: str, process: str, status: int | None) -> None:
    """What ended otherwise may have kept something to itself, whatever its history says."""
    reasons = [each.reason for each in incomplete(a_run(children=children(**{name: status})), facts(), closing())]
    child = name.replace("_", "-")
    pid = next(each.pid for each in a_run().children if each.name == child)
    assert reasons == [f"{child} (pid {pid}) ended with exit status {status} instead of 0"]
    without = [each for each in a_run().children if each.name != child]
    reasons = [each.reason for each in incomplete(a_run(children=without), facts(), closing())]
    assert reasons == [f"run.json has no process of {process}"]
