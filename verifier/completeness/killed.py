"""Decides whether a recorded fault killed a process, and whether the process's history ends at that time. Pure.

Owns these rules. A fault that names the process is not enough. The fault must be of a kind that kills such processes,
its probe must have seen this process dead, and the time must agree with the files that the process left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from verifier.accounts.account import HistoryAccount
from verifier.closing.closing import Closing
from verifier.completeness.counted import counted
from verifier.evidence.fault_kinds import FAILING_DISKS, HALTING, KILLING_MACHINES, KILLING_SEVERAL
from verifier.evidence.history import FLUSH_INTERVAL_NS
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import ns_of_seconds, seconds_of_ns
from verifier.witness.effectiveness import Injected

#: The exit status of a process after SIGKILL.
KILLED = -9
#: The exit status of a broker whose disk failed.
FAILED = 1
#: The exit statuses of a broker that ran out of memory: it halted itself, or native code aborted it.
HALTED, ABORTED = 3, -6
#: Exit status of a process that was not killed -> the kinds of faults that can cause it.
_ENDS: Mapping[int | None, Collection[str]] = {FAILED: FAILING_DISKS, HALTED: HALTING, ABORTED: HALTING}
#: The exit statuses that a fault may explain.
EXPLAINED = frozenset((KILLED, FAILED, HALTED, ABORTED))

#: Faults that kill brokers only.
_BROKERS_ALONE = frozenset(
    (
        *("kill-leader", "kill-follower", "kill-controller", "kill-transaction-coordinator", "kill-group-coordinator"),
        "kill-and-wipe",
        *KILLING_MACHINES,
        *KILLING_SEVERAL,
    )
)
#: This fault shuts brokers down cleanly, and kills a broker that does not stop in time.
_ROLLING = "rolling-restart"
_ZOOKEEPER = "restart-zookeeper"

#: A reader without new records writes a row each second.
_IDLE_NS = 1_000_000_000


#: Faults that kill only processes of the load -> how the names of these processes begin.
_OF_LOAD = {"kill-producers": "producer", "kill-readers": "reader"}
#: The same faults -> the role whose histories they may cut short. No fault kills members of a group, so the histories
#: of members always have an end.
_ROLES = {"kill-producers": "producers", "kill-readers": "readers"}


def kills(fault: str, process: str) -> bool:
    """Whether a fault of this kind can kill this process."""
    if fault in _BROKERS_ALONE or fault == _ROLLING:
        return process.startswith("broker-")
    if fault == _ZOOKEEPER:
        return process == "zookeeper"
    return fault in _OF_LOAD and process.startswith(_OF_LOAD[fault])


def killer(process: str, pid: int, closing: Closing, exit_code: int | None = KILLED) -> Injected | None:
    """The first fault that can cause this exit status and whose probe saw this process dead; None if there is none."""
    for each in closing.faults.injected:
        fits = kills(each.fault, process) if exit_code == KILLED else each.fault in _ENDS.get(exit_code, ())
        if not each.skipped and fits and any(_is_dead(s, process, pid) for s in _seen(each)):
            return each
    return None


def _seen(each: Injected) -> Iterator[Mapping[str, Any]]:
    """The part of a fault's probe about each process that it ended."""
    if each.fault != _ROLLING and each.fault not in KILLING_SEVERAL:
        yield each.probe
        return
    steps = each.probe.get("steps")
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict):
            yield {**step, "dead": step.get("in_time") is False} if each.fault == _ROLLING else step


def _is_dead(seen: Mapping[str, Any], process: str, pid: int) -> bool:
    """Whether a probe saw this process dead."""
    broker = seen.get("broker")
    named = seen.get("process") if broker is None else f"broker-{broker}"
    return seen.get("dead") is True and seen.get("pid") == pid and named in (None, process)


def torn(run: RunModel, account: HistoryAccount, closing: Closing) -> Iterator[str]:
    """Reasons not to trust a history without an end; none if a fault killed its process where the history ends."""
    declared = run.evidence.process(account.process)
    by = [
        each
        for child in run.children
        if child.name == account.process and child.exit_code == KILLED
        for each in [killer(child.name, child.pid, closing)]
        if each is not None and each.effective and declared is not None and declared.role == _ROLES.get(each.fault)
    ]
    if not by:
        yield f"the history {account.file} has no proper end, and no fault on record killed its process"
        return
    (fault, died_ns) = by[0], by[0].probed_ns or by[0].start_ns
    # rows are flushed every half second, and series points are written every second. The event loop may lag by the rest
    # before the harness counts as overloaded
    late_ns = FLUSH_INTERVAL_NS + _IDLE_NS + ns_of_seconds(run.settings.stalled_after_s / 2)
    if account.last_ns < fault.start_ns - late_ns:
        seconds = seconds_of_ns(fault.start_ns - account.last_ns)
        yield f"the history {account.file} ends {seconds:.1f} s before {fault.fault} killed its process"
    elif account.last_ns > died_ns:
        seconds = seconds_of_ns(account.last_ns - died_ns)
        yield f"the history {account.file} ends {seconds:.1f} s after {fault.fault} had killed its process"
    point = closing.series.get(account.process)
    if point is not None and point.time_ns > died_ns:
        seconds = seconds_of_ns(point.time_ns - died_ns)
        yield f"the live series of {account.process} continues for {seconds:.1f} s after {fault.fault} had killed it"
    elif point is not None and point.time_ns < fault.start_ns - late_ns:
        seconds = seconds_of_ns(fault.start_ns - point.time_ns)
        yield f"the live series of {account.process} ends {seconds:.1f} s before {fault.fault} killed its process"
    yield from _missing(account, closing, fault.fault)


def _missing(account: HistoryAccount, closing: Closing, fault: str) -> Iterator[str]:
    """Values that are missing in a torn history although its process must have flushed them.

    They were counted in the series point before the last one, and flushed before the last point was written.
    """
    before = closing.before_last.get(account.process)
    for each in counted(account, before) if before is not None else ():
        if each.found < each.counted:
            told = f"the history {account.file} has {each.found} values {each.word}, and its process had counted"
            yield f"{told} {each.counted} more than a second before {fault} killed it"
