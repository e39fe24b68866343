"""Checks that every declared history exists, is complete, and agrees with itself and with the live series. Pure.

Owns these doubts. Does not own whether a fault explains a torn history (``verifier.completeness.killed``), or which
rows a process can have written (``verifier.completeness.rows``).
"""

from __future__ import annotations

from collections.abc import Iterator

from verifier.accounts.account import HistoryAccount
from verifier.closing.closing import Closing
from verifier.completeness.counted import counted
from verifier.completeness.killed import torn
from verifier.completeness.rows import strange
from verifier.doubts import HISTORIES, Doubt
from verifier.evidence.declared import LIVE, DeclaredProcess
from verifier.evidence.run_model import RunModel
from verifier.outcomes import may_fail


def doubts(run: RunModel, closing: Closing) -> Iterator[Doubt]:
    """Histories that are missing, cut short, damaged or contradictory."""
    for reason in [*_declared(run, closing), *_each(run, closing)]:
        yield Doubt(reason, HISTORIES)


def _declared(run: RunModel, closing: Closing) -> Iterator[str]:
    """Histories that are missing, were not declared, belong to another process, or exist twice."""
    if not run.evidence.processes:
        yield "run.json does not declare which processes must leave a history"
        return
    if not closing.accounts:
        yield "there is no history"
        return
    present = [account.process for account in closing.accounts]
    for process in run.evidence.processes:
        if process.name not in present:
            yield f"the history of {process.name} is missing"
    for account in closing.accounts:
        if account.state != "damaged" and run.evidence.process(account.process) is None:
            yield f"the history {account.file} is of {account.process}, which was not declared"
        elif account.state != "damaged" and account.file != f"{account.process}.arrow":
            yield f"the history {account.file} is of another process, {account.process}"
    for name in sorted({name for name in present if present.count(name) > 1}):
        yield f"{name} has several histories"


def _each(run: RunModel, closing: Closing) -> Iterator[str]:
    """The problems within each history."""
    for account in closing.accounts:
        declared = run.evidence.process(account.process)
        if account.state == "damaged":
            yield f"the history {account.file} cannot be read: {account.error}"
            continue
        if account.state == "torn":
            yield from torn(run, account, closing)
        else:
            yield from _totals(account)
            yield from (f"{account.file}: sequences {each}" for each in account.unanswered)
        yield from (f"{account.file}: sequences {each}" for each in account.complaints)
        if run.settings.acks != "0":
            yield from _unplaced(run, account)
        yield from _places(run, account)
        yield from strange(account, declared)
        if declared is not None:
            yield from _outcomes(account, declared)
        if declared is not None and account.state == "closed":
            yield from _streams(account, declared)
            yield from _series(account, declared, closing)


def _totals(account: HistoryAccount) -> Iterator[str]:
    """Differences between a history and the totals at its end, which count the rows and values of each kind."""
    if not account.totals and account.rows:
        yield f"the history {account.file} has no totals at its end"
        return
    for kind in sorted({*account.rows, *account.totals}):
        found, told = account.rows.get(kind, (0, 0)), account.totals.get(kind, (0, 0))
        if found != told:
            yield (
                f"the history {account.file} has {found[0]} rows {kind[0]}/{kind[1]} with {found[1]} values, "
                f"and says that it has {told[0]} with {told[1]}"
            )


def _unplaced(run: RunModel, account: HistoryAccount) -> Iterator[str]:
    """Acknowledgements without an offset that nothing explains.

    With idempotence, a broker may acknowledge a batch without its offset only if it was resent: the broker recognizes
    the sequences as a duplicate.
    """
    if run.settings.idempotence:
        yield from (f"{account.file}: sequences {each}, and never sent again" for each in account.unplaced)
    elif account.partitions_without_offsets:
        where = ", ".join(f"{topic}-{number}" for topic, number in sorted(account.partitions_without_offsets)[:5])
        yield f"the history {account.file} has acknowledgements without an offset in {where}"


def _places(run: RunModel, account: HistoryAccount) -> Iterator[str]:
    """Partitions that the run does not have. Their rows could not be compared with any log."""
    unknown = sorted({f"{topic}-{partition}" for topic, partition in account.partitions} - set(run.evidence.replicas))
    if unknown:
        yield f"the history {account.file} mentions {', '.join(unknown[:5])}, which the run does not have"


def _streams(account: HistoryAccount, declared: DeclaredProcess) -> Iterator[str]:
    """Streams of a producer's history that it does not write, or that are missing."""
    if declared.role != "producers":
        return
    wanted = frozenset(range(declared.first_stream, declared.first_stream + declared.streams))
    if others := account.streams - wanted:
        yield f"the history {account.file} mentions streams {_listed(others)}, which {account.process} does not write"
    if absent := wanted - account.streams:
        yield f"the history {account.file} does not mention streams {_listed(absent)}"


def _outcomes(account: HistoryAccount, declared: DeclaredProcess) -> Iterator[str]:
    """Outcomes that contradict their error. The verifier's own table decides what an error means."""
    for (outcome, name), values in sorted(account.errors.items()):
        if outcome == "ok":
            error = name or "an error"
            yield f"the history {account.file} says that {values} records were acknowledged with {error}"
        elif outcome == "fail" and not may_fail(declared.client, name):
            yield (
                f"the history {account.file} says that {values} records certainly failed, "
                f"but after {name or 'an error without a name'} no one can know that"
            )


def _series(account: HistoryAccount, declared: DeclaredProcess, closing: Closing) -> Iterator[str]:
    """Differences to the live series, which counts the same values independently, in another file."""
    if declared.role not in LIVE:
        return
    last = closing.series.get(account.process)
    if last is None:
        yield f"{account.process} left no series"
        return
    for each in counted(account, last):
        if each.found != each.counted:
            told = f"the history {account.file} has {each.found} values {each.word}"
            yield f"{told}, its process's live series {each.counted}"


def _listed(numbers: frozenset[int]) -> str:
    ordered = sorted(numbers)
    return ", ".join(map(str, ordered[:5])) + (f" and {len(ordered) - 5} more" if len(ordered) > 5 else "")
