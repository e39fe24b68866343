"""Whether the records of faults and leaders can be believed, and something was attempted in each fault. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifier.accounts import INTERVAL_NS
from verifier.closing import Closing
from verifier.completeness.load import unreadable
from verifier.completeness.together import together
from verifier.doubts import EXCUSES, Doubt
from verifier.effectiveness import Injected
from verifier.evidence.run_model import RunModel

#: A window in which fewer records than these were due may well have had none.
LEAST_DUE = 5.0


def doubts(run: RunModel, closing: Closing) -> Iterator[Doubt]:
    """What is wrong with the faults as they were recorded, and windows in which the load did nothing."""
    for complaint in closing.faults.complaints:
        yield Doubt(complaint, EXCUSES)
    for each in closing.faults.injected:
        if not each.skipped and each.fault not in run.faults_requested:
            yield Doubt(f"injection {each.number} is {each.fault}, which was not asked for", EXCUSES)
    for reason in _elections(run, closing):
        yield Doubt(reason, EXCUSES)
    if not unreadable(run, closing, "producers"):
        for reason in _windows(run, closing):
            yield Doubt(reason)


def _elections(run: RunModel, closing: Closing) -> Iterator[str]:
    """The conductor looks for leaders until the brokers stop: it knows every epoch that the final phase knows."""
    complaints = [
        (
            f"{final.topic}-{final.partition}",
            f"it ended in leader epoch {final.leader_epoch}, and leaders.jsonl knows none after {seen}",
        )
        for final in run.final
        if (seen := closing.leader_epochs.get((final.topic, final.partition), final.leader_epoch)) < final.leader_epoch
    ]
    yield from together(complaints)


def _windows(run: RunModel, closing: Closing) -> Iterator[str]:
    attempts = [spanned for account in closing.accounts for spanned in account.attempts]
    for each in closing.faults.injected:
        if each.skipped or each.end_ns is None:
            continue
        seconds = (each.end_ns - each.start_ns) / 1e9
        if run.settings.rate * seconds >= LEAST_DUE and not _attempted(each, attempts):
            yield f"nothing was sent while {each.fault} on {each.target} lasted ({seconds:.1f} s)"


def _attempted(each: Injected, attempts: list[tuple[int, int]]) -> bool:
    first, last = each.start_ns // INTERVAL_NS, (each.end_ns or each.start_ns) // INTERVAL_NS
    return any(begin <= last and end >= first for begin, end in attempts)
