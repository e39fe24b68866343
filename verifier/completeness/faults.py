"""Checks the records of faults and leaders for contradictions, and that records were sent during each fault. Pure.

Owns these doubts. Does not own two kinds of contradiction: ``verifier.completeness.targets`` checks what a fault hit,
and ``verifier.completeness.down_links`` how often a link was down.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.accounts.account import INTERVAL_NS
from verifier.closing.closing import Closing
from verifier.completeness.down_links import unwitnessed
from verifier.completeness.load import unreadable
from verifier.completeness.targets import misnamed
from verifier.completeness.together import together
from verifier.doubts import EXCUSES, Doubt
from verifier.evidence.phases import HEAL
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import seconds_of_ns
from verifier.witness.effectiveness import NOT_OVER, Injected

#: If fewer records than this were due during a fault, it is possible that none was sent.
LEAST_DUE = 5.0
#: Tolerance for times outside the phases. One process notes phases, faults and looks with the same clock, but a look
#: may end while a phase is being noted.
SLACK_NS = 1_000_000_000


def doubts(run: RunModel, closing: Closing) -> Iterator[Doubt]:
    """Contradictions in the records of faults and leaders, and faults during which the load sent nothing."""
    for complaint in closing.faults.complaints:
        yield Doubt(complaint, EXCUSES)
    for each in closing.faults.injected:
        if not each.skipped and each.fault not in run.faults_requested:
            yield Doubt(f"injection {each.number} is {each.fault}, which was not asked for", EXCUSES)
    for each in closing.faults.injected:
        if not each.skipped and each.end_ns is not None and not (each.healed or each.late):
            yield Doubt(f"injection {each.number} ({each.fault} on {each.target}) was {NOT_OVER} by the end", EXCUSES)
    for reason in [*_times(run, closing), *misnamed(closing), *unwitnessed(closing), *_elections(run, closing)]:
        yield Doubt(reason, EXCUSES)
    if not unreadable(run, closing, "producers"):
        for reason in _windows(run, closing):
            yield Doubt(reason)


def _times(run: RunModel, closing: Closing) -> Iterator[str]:
    """Faults and looks with impossible times, which could excuse too much.

    All of them must lie within the phases of the run. Every fault must end before the phase ``heal`` does, because that
    phase ends when everything is healed, and from then on partitions must accept writes.
    """
    ends = [phase.end_ns for phase in run.phases if phase.end_ns is not None]
    if not ends or len(ends) != len(run.phases):
        return  # ``verifier.completeness.experiment`` reports it
    first, last = run.phases[0].start_ns - SLACK_NS, max(ends) + SLACK_NS
    healed = run.phase(HEAL)
    healed_ns = None if healed is None else healed.end_ns
    for each in closing.faults.injected:
        known = (each.start_ns, each.probed_ns, each.healed_ns, each.end_ns, each.again_ns)
        times = [at for at in known if at is not None]
        if not each.skipped and not first <= min(times) <= max(times) <= last:
            yield f"injection {each.number} ({each.fault}) has times that lie outside the phases of the run"
        elif healed_ns is not None and each.end_ns is not None and each.end_ns > healed_ns:
            seconds = seconds_of_ns(each.end_ns - healed_ns)
            yield f"injection {each.number} ({each.fault}) ended {seconds:.1f} s after the phase {HEAL} had ended"
    if closing.looks_ns is not None and not (first <= closing.looks_ns[0] and closing.looks_ns[1] <= last):
        yield "leaders.jsonl has times that lie outside the phases of the run"


def _elections(run: RunModel, closing: Closing) -> Iterator[str]:
    """Contradictions between ``leaders.jsonl`` and the final state of partitions.

    The conductor looks for leaders until the brokers stop. So it has seen each partition's last epoch and its leader,
    and every partition is in the file, since its first look at each is recorded too.
    """
    complaints = []
    for final in run.final:
        name, seen = f"{final.topic}-{final.partition}", closing.looks.get((final.topic, final.partition))
        if not seen:
            continue
        last = seen[-1]
        ended = f"it ended in leader epoch {final.leader_epoch}"
        if last.epoch < final.leader_epoch:
            complaints.append((name, f"{ended}, but leaders.jsonl has none after {last.epoch}"))
        elif last.epoch == final.leader_epoch and last.leader not in (final.leader, None):
            complaints.append((name, f"{ended} led by {final.leader}, and by {last.leader} in leaders.jsonl"))
    if not any(each.path == "leaders.jsonl" for each in closing.unreadable):
        complaints += [
            (f"{final.topic}-{final.partition}", "leaders.jsonl does not mention it")
            for final in run.final
            if (final.topic, final.partition) not in closing.looks
        ]
    yield from together(complaints)


def _windows(run: RunModel, closing: Closing) -> Iterator[str]:
    """Faults during which the load attempted to send nothing, although enough records were due."""
    attempts = [spanned for account in closing.accounts for spanned in account.attempts]
    for each in closing.faults.injected:
        if each.skipped or each.end_ns is None:
            continue
        seconds = seconds_of_ns(each.end_ns - each.start_ns)
        if run.settings.rate * seconds >= LEAST_DUE and not _attempted(each, attempts):
            yield f"nothing was sent while {each.fault} on {each.target} lasted ({seconds:.1f} s)"


def _attempted(each: Injected, attempts: list[tuple[int, int]]) -> bool:
    first, last = each.start_ns // INTERVAL_NS, (each.end_ns or each.start_ns) // INTERVAL_NS
    return any(begin <= last and end >= first for begin, end in attempts)
