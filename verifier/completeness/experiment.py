"""Checks that the run went as planned: phases, processes and how they ended, and the health of the harness. Pure.

Owns these doubts. Does not own how a fault explains the end of a process (``verifier.completeness.killed``).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from verifier.bounds import MARGIN_MS, bounds
from verifier.closing.closing import Closing, LogAlarm
from verifier.completeness.killed import EXPLAINED, killer
from verifier.doubts import CLOCK, EXCUSES, Doubt
from verifier.evidence.declared import LIVE
from verifier.evidence.fault_kinds import FAILING_DISKS, HALTING, NO_MEMORY
from verifier.evidence.phases import PHASES
from verifier.evidence.run_model import ChildProcess, RunModel
from verifier.evidence.units import ms_of_seconds, seconds_of_ms, seconds_of_ns
from verifier.narrowed import is_foreign
from verifier.witness.witness import CONNECTION_NS, SLACK_NS

#: Processes of the harness whose event loops the cluster depends on. A broker's own lag is part of the experiment.
HARNESS_LOOPS = ("proxy", "conductor")
#: Processes that a run may have without declaring them. They leave no evidence that the verifier reads.
RELAYS = "relays"
OF_HARNESS = frozenset(("warden", "proxy", "zookeeper", RELAYS))


def problems(run: RunModel) -> Iterator[Doubt]:
    """The problems that the run itself recorded. If the run ended early, the first doubt says so."""
    complete = {phase.name for phase in run.phases} >= set(PHASES)
    follows = "" if complete else "; the run ended early, which may be the only reason for what is missing below"
    for problem in [*run.problems, *run.harness.problems]:
        yield Doubt(problem + follows)
        follows = ""


def doubts(run: RunModel, closing: Closing) -> Iterator[Doubt]:
    """The other problems of the run, which it did not record itself."""
    if run.interrupted:
        yield Doubt("the run was interrupted")
    for reason in [*_overloaded(run, closing), *_phases(run), *_children(run, closing), *_alarms(closing)]:
        yield Doubt(reason)
    for reason in _clock(run, closing):
        yield Doubt(reason, CLOCK)
    for reason in _late(run, closing):
        yield Doubt(reason, EXCUSES)


def _clock(run: RunModel, closing: Closing) -> Iterator[str]:
    """Compares the start of the run in ``run.json`` with its end, and with the times that Locust noted."""
    span = bounds(run, closing.clock)
    if span.earliest_ms is None or span.latest_ms is None:
        return  # ``_phases`` reports it
    if run.ended is not None:
        try:
            ended_ms = ms_of_seconds(datetime.fromisoformat(run.ended).timestamp())
        except ValueError:
            yield f"run.json says that the run ended at {run.ended!r:.40}, which is not a time"
        else:
            if ended_ms < span.latest_ms - 2 * MARGIN_MS:
                yield f"run.json says that the run ended at {run.ended}, and that its phases continued after that"
    for name, left in sorted(closing.beside.items()):
        if left.wall_s is not None:
            first_ms, last_ms = (ms_of_seconds(second) for second in left.wall_s)
            if first_ms < span.earliest_ms or last_ms > span.latest_ms:
                yield f"run.json says that the run began at {run.started}, and Locust noted another time for {name}"


def _late(run: RunModel, closing: Closing) -> Iterator[str]:
    """Producers whose event loop stood still for too long.

    Such a client notes a lost connection so late that no excuse covers it, and legal losses would be anomalies.
    """
    limit_s = {"0": seconds_of_ns(CONNECTION_NS), "1": seconds_of_ns(SLACK_NS)}.get(run.settings.acks)
    for process in run.evidence.of_role("producers"):
        lag_s = seconds_of_ms(closing.lag_ms.get(process.name, 0.0))
        if limit_s is not None and lag_s > limit_s:
            yield (
                f"the event loop of {process.name} stood still for {lag_s:.2f} s: with acks={run.settings.acks}, what "
                f"is noted more than {limit_s:.0f} s late cannot be told from what was lost without cause"
            )


def _overloaded(run: RunModel, closing: Closing) -> Iterator[str]:
    """Event loops that stood still for too long, and processes whose lag was not recorded."""
    session_s, stalled_s = seconds_of_ms(run.settings.session_timeout_ms) / 2, run.settings.stalled_after_s / 2
    lags = {
        name: (lag_s, session_s, "a ZooKeeper session")
        for name, lag_s in run.harness.event_loop_lag_s.items()
        if name.startswith(HARNESS_LOOPS)
    }
    # a client has no ZooKeeper session, but its own stall must not look like a stalled partition
    lags |= {
        name: (seconds_of_ms(lag_ms), stalled_s, "what counts as stalled") for name, lag_ms in closing.lag_ms.items()
    }
    for process, (lag_s, limit_s, of_what) in sorted(lags.items()):
        if lag_s > limit_s:
            yield (
                f"harness overloaded: the event loop of {process} stood still for {lag_s:.2f} s, "
                f"more than half of {of_what} ({limit_s:.2f} s); "
                "repeat the run on an idle machine, or with a lower --rate"
            )
    own_proxy = any(child.name == "proxy" for child in run.children)
    wanted = ["conductor", *(["proxy"] if own_proxy else [])]
    absent = [name for name in wanted if name not in run.harness.event_loop_lag_s]
    live = run.evidence.of_role(*LIVE)
    absent += [process.name for process in live if process.name not in closing.lag_ms]
    for name in absent:
        yield f"no event-loop lag of {name} was recorded"


def _phases(run: RunModel) -> Iterator[str]:
    """Violations of these rules: the start is known, and all phases are there, in order, with ends, without overlap."""
    try:
        datetime.fromisoformat(run.started)
    except ValueError:
        yield f"run.json says that the run began at {run.started!r:.40}, which is not a time"
    names = [phase.name for phase in run.phases]
    if names != list(PHASES):
        missing = [name for name in PHASES if name not in names]
        if missing:
            yield f"the run has no phase {', '.join(missing)}"
        else:
            yield f"the phases of the run are not in their order: {', '.join(names)}"
        return
    for phase in run.phases:
        if phase.end_ns is None:
            yield f"phase {phase.name} has no end"
        elif phase.end_ns < phase.start_ns:
            yield f"phase {phase.name} ends before it begins"
    for before, after in zip(run.phases, run.phases[1:], strict=False):
        if before.end_ns is not None and after.start_ns < before.end_ns:
            yield f"phase {after.name} begins before {before.name} has ended"


def _children(run: RunModel, closing: Closing) -> Iterator[str]:
    """Missing and undeclared processes, and processes that did not end as they should."""
    if not run.children:
        yield "run.json names no process"
    lives: dict[str, list[ChildProcess]] = {}
    for child in run.children:
        lives.setdefault(child.name, []).append(child)
    own = [] if is_foreign(run) else run.evidence.brokers
    named = [(f"broker {broker}", f"broker-{broker}") for broker in own]
    named += [("the relays", RELAYS)] * is_foreign(run)  # without them, clients would have bypassed the links
    named += [(process.name, process.child) for process in run.evidence.processes]
    for what, name in named:
        if name not in lives:
            yield f"run.json has no process of {what}"
    expected = {name for _, name in named}
    # no other rule would miss the evidence of an undeclared process
    undeclared = lives.keys() - expected - OF_HARNESS if run.evidence.processes else set()
    for name in sorted(undeclared):
        yield f"run.json names a process {name}, which the run did not declare"
    for name in sorted(lives):
        if name in expected or name.startswith("broker-"):
            yield from _ends(lives[name], closing)


def _ends(lives: list[ChildProcess], closing: Closing) -> Iterator[str]:
    """Wrong exits among the processes with one name, in the order of their starts.

    A fault may end any of them. But a killed broker is restarted, so the last process of a broker must end with 0.
    """
    for number, child in enumerate(lives, start=1):
        if child.exit_code == 0:
            continue
        told = f"{child.name} (pid {child.pid}) ended with exit status {child.exit_code}"
        is_last = number == len(lives)
        if child.exit_code in EXPLAINED and killer(child.name, child.pid, closing, child.exit_code) is not None:
            if is_last and child.name.startswith("broker-"):
                yield f"{told} instead of 0"
        else:
            yield f"{told} instead of 0" if is_last else f"{told}, and no fault had killed it"


def _alarms(closing: Closing) -> Iterator[str]:
    """Errors in the logs of processes that no fault explains."""
    for alarm in closing.alarms:
        if alarm.known and _is_explained(alarm, closing):
            continue
        more = f" ({alarm.count} such lines)" if alarm.count > 1 else ""
        yield f"{alarm.path} has an error{more}: {alarm.first}"


def _is_explained(alarm: LogAlarm, closing: Closing) -> bool:
    """Whether a fault explains the error: it gave this broker a disk with exactly this error, or took its memory."""
    return any(
        alarm.path.startswith(f"nodes/{each.probe.get('broker')}/")
        and (
            each.probe.get("disk_error") == alarm.known
            if each.fault in FAILING_DISKS
            else each.fault in HALTING and alarm.known == NO_MEMORY
        )
        for each in closing.faults.injected
    )
