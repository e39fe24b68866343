"""Whether the run went as it had to: phases, processes and their ends, the harness's own health. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from verifier.closing import Closing
from verifier.doubts import Doubt
from verifier.evidence.run_model import ChildProcess, PhaseSpan, RunModel

#: The phases of a run, in their order.
PHASES = ("start", "load starts", "chaos", "heal", "recovery", "flush", "final read", "stop")

#: The processes whose event loop decides what the cluster sees; the brokers' own lag is theirs.
HARNESS_LOOPS = ("proxy", "conductor")


def doubts(run: RunModel, closing: Closing) -> Iterator[Doubt]:
    """What kept the run from being an experiment that proves something."""
    for problem in [*run.problems, *run.harness.problems]:
        yield Doubt(problem)
    if run.interrupted:
        yield Doubt("the run was interrupted")
    for reason in [*_overloaded(run, closing), *_phases(run), *_children(run, closing), *_alarms(closing)]:
        yield Doubt(reason)


def _overloaded(run: RunModel, closing: Closing) -> Iterator[str]:
    session_s, stalled_s = run.settings.session_timeout_ms / 2000, run.settings.stalled_after_s / 2
    lags = {
        name: (lag_s, session_s, "a ZooKeeper session")
        for name, lag_s in run.harness.event_loop_lag_s.items()
        if name.startswith(HARNESS_LOOPS)
    }
    # a client has no session; but a stall of its own must not look like a partition that acknowledges nothing
    lags |= {name: (lag_ms / 1000, stalled_s, "what counts as stalled") for name, lag_ms in closing.lag_ms.items()}
    for process, (lag_s, limit_s, of_what) in sorted(lags.items()):
        if lag_s > limit_s:
            yield (
                f"harness overloaded: the event loop of {process} stood still for {lag_s:.2f} s, "
                f"more than half of {of_what} ({limit_s:.2f} s)"
            )
    own_proxy = any(child.name == "proxy" for child in run.children)
    wanted = ["conductor", *(["proxy"] if own_proxy else [])]
    absent = [name for name in wanted if name not in run.harness.event_loop_lag_s]
    live = run.evidence.of_role("producers", "readers")
    absent += [process.name for process in live if process.name not in closing.lag_ms]
    for name in absent:
        yield f"no event-loop lag of {name} was recorded"


def _phases(run: RunModel) -> Iterator[str]:
    """The beginning is known; all phases are there, in their order, one after the other, each with its end."""
    try:
        datetime.fromisoformat(run.started)
    except ValueError:
        yield f"run.json says that the run began at {run.started!r:.40}, which is no time"
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


def span(run: RunModel, name: str) -> PhaseSpan | None:
    """A phase by its name."""
    return next((phase for phase in run.phases if phase.name == name), None)


def _children(run: RunModel, closing: Closing) -> Iterator[str]:
    """Every process ended as it was asked to, or was ended by a fault that is on record."""
    if not run.children:
        yield "run.json names no process"
    brokers: dict[str, list[ChildProcess]] = {}
    for child in run.children:
        if child.name.startswith("broker-"):
            brokers.setdefault(child.name, []).append(child)
    for declared in run.evidence.brokers:
        if f"broker-{declared}" not in brokers:
            yield f"run.json has no process of broker {declared}"
    for name, lives in sorted(brokers.items()):
        for child in lives[:-1]:
            if child.exit_code != 0 and not (child.exit_code == -9 and is_killed(name, child.pid, closing)):
                yield f"{name} (pid {child.pid}) ended with exit status {child.exit_code}, and no fault had killed it"
        if lives[-1].exit_code != 0:
            yield f"{name} (pid {lives[-1].pid}) ended with exit status {lives[-1].exit_code} instead of 0"


def is_killed(name: str, pid: int, closing: Closing) -> bool:
    """Whether a fault on record ended this process: its probe, or a step in it, names the pid or the process."""
    probes = [each.probe for each in closing.faults.injected if not each.skipped]
    listed = [probe["steps"] for probe in probes if isinstance(probe.get("steps"), list)]
    steps = [step for every in listed for step in every if isinstance(step, Mapping)]
    return any(seen.get("pid") == pid or seen.get("process") == name for seen in [*probes, *steps])


def _alarms(closing: Closing) -> Iterator[str]:
    for alarm in closing.alarms:
        more = f" ({alarm.count} such lines)" if alarm.count > 1 else ""
        yield f"{alarm.path} has an error{more}: {alarm.first}"
