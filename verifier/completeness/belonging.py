"""Checks that each row of a history belongs to a known session and transaction. Pure.

Owns these doubts. The checks need three links. A ``member`` row links a session to its group. An ``isolation`` row says
that a session reads only committed records. And ``begin``, ``commit`` and ``abort`` rows say which transaction a value
belongs to, and how it ended. Without these rows, the checks would compare nothing and find nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from verifier.accounts.account import HistoryAccount
from verifier.closing.closing import Closing
from verifier.doubts import HISTORIES, Doubt
from verifier.evidence.declared import DeclaredProcess
from verifier.evidence.how_many import how_many
from verifier.evidence.run_model import RunModel
from verifier.workload_asked import transactions_asked

_ISOLATION, _READ_COMMITTED = "isolation.level", "read_committed"
#: The most sessions, or ranges of transactions, that a doubt names.
_MOST = 5


def doubts(run: RunModel, closing: Closing) -> Iterator[Doubt]:
    """Rows that no check would count: one doubt for each history and reason."""
    for account in closing.accounts:
        declared = run.evidence.process(account.process)
        if account.state != "damaged" and declared is not None:
            for reason in [
                *_of_members(account, declared),
                *_of_readers(run, account, declared, closing),
                *_of_transactions(run, account, declared),
            ]:
                yield Doubt(f"the history {account.file} {reason}", HISTORIES)


def _of_members(account: HistoryAccount, declared: DeclaredProcess) -> Iterator[str]:
    if declared.role == "members" and account.memberless:
        sessions = _listed([str(each) for each in sorted(account.memberless)])
        yield f"has rows of the sessions {sessions}, and no member row says whose they are"


def _of_readers(run: RunModel, account: HistoryAccount, declared: DeclaredProcess, closing: Closing) -> Iterator[str]:
    """Sessions whose isolation is not the one that the run asked for. Applies only to runs with transactions.

    There, all readers have ``isolation.level=read_committed``, except those of one client. If a session reads
    everything but its history says ``read_committed``, it can skip values that look aborted, and no check finds that.
    Without the load's settings (which have their own doubt), the isolation that was asked for is unknown.
    """
    if declared.role not in ("readers", "final") or closing.load is None or transactions_asked(run) is None:
        return
    is_committed = _reads_committed(run, declared, closing.load)
    wrong = account.assigned - account.isolated if is_committed else account.isolated
    if not wrong:
        return
    sessions = f"its sessions {_listed([str(each) for each in sorted(wrong)])} are handed only what is committed"
    if is_committed:
        yield f"does not say that {sessions}, which the run asked for"
    else:
        yield f"says that {sessions}, which the run did not ask for"


def _reads_committed(run: RunModel, declared: DeclaredProcess, load: Mapping[str, object]) -> bool:
    """Whether a reader should have ``read_committed`` isolation. This is the same rule as in the load."""
    config = load.get("consumer_config")
    if isinstance(config, dict) and _ISOLATION in config:
        return bool(config[_ISOLATION] == _READ_COMMITTED)
    clients = run.settings.readers
    sees_everything = len(set(clients)) > 1 and declared.client == clients[0]
    return declared.role == "final" or not sees_everything


def _of_transactions(run: RunModel, account: HistoryAccount, declared: DeclaredProcess) -> Iterator[str]:
    if account.unbegun:
        yield f"has values that were sent in the transactions {_ranges(account.unbegun)}, which were never begun"
    if account.unended and account.state == "closed":
        yield f"has no end of the transactions {_ranges(account.unended)}"
    if account.sent_outside and declared.role == "producers" and transactions_asked(run) is not None:
        yield f"has {how_many(account.sent_outside, 'row')} of values that were sent outside of transactions"


def _ranges(found: Sequence[tuple[int, int]]) -> str:
    return _listed([str(first) if first == last else f"{first} to {last}" for first, last in found])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
