"""Checks that each row of a history is one that its process can have written. Pure.

Owns which outcomes, roles and phases the rows of each function can have, and which fields they need. A row with an
impossible outcome, role or phase, without times, or without the offset that every poll has, would not be counted or
compared, or would excuse an anomaly without a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from verifier.accounts.account import HistoryAccount
from verifier.evidence.declared import DeclaredProcess
from verifier.evidence.how_many import how_many
from verifier.evidence.sequenced_value import SENTINEL_STREAM

#: Function -> the outcomes (``type``) that its rows can have (docs/history.md). There are no other functions.
OUTCOMES: Mapping[str, frozenset[str]] = {
    "reserve": frozenset(("invoke",)),
    "send": frozenset(("ok", "fail", "info")),
    "unsent": frozenset(("fail",)),
    "poll": frozenset(("ok",)),
    "assign": frozenset(("ok",)),
    "seek": frozenset(("ok",)),
    "idle": frozenset(("ok",)),
    "incarnation": frozenset(("invoke", "ok")),
    "delete": frozenset(("ok", "fail", "info")),
    "sentinel": frozenset(("ok", "info")),
    "retry": frozenset(("info",)),
    "disconnect": frozenset(("info",)),
    "note": frozenset(("info",)),
    "begin": frozenset(("ok",)),
    "commit": frozenset(("ok", "fail", "info")),
    "abort": frozenset(("ok", "fail", "info")),
    "offsets": frozenset(("ok", "fail", "info")),
    "isolation": frozenset(("ok",)),
    "end-offset": frozenset(("ok",)),
    "member": frozenset(("ok",)),
    "resume": frozenset(("ok",)),
    "revoke": frozenset(("ok",)),
    "offset-commit": frozenset(("ok", "fail", "info")),
    "leave": frozenset(("ok",)),
}

#: Function -> the roles that write its rows. Any role may write a function that is not listed here.
_ROLES = {
    "reserve": ("producers", "sentinel"),
    "send": ("producers",),
    "unsent": ("producers", "sentinel"),
    "delete": ("producers",),
    "sentinel": ("sentinel",),
    "poll": ("readers", "members", "final"),
    "assign": ("readers", "final"),
    # a reader that seeks could skip records that it must read
    "seek": (),
    "idle": ("readers", "final"),
    "begin": ("producers", "members"),
    "commit": ("producers", "members"),
    "abort": ("producers", "members"),
    "offsets": ("producers", "members"),
    "isolation": ("readers", "members", "final"),
    "end-offset": ("readers",),
    "member": ("members",),
    "resume": ("members",),
    "revoke": ("members",),
    "offset-commit": ("members",),
    "leave": ("members",),
}

#: Role -> the phase of its rows, for the functions in ``_OF_A_PHASE``. Rows of other functions may be in either phase.
_PHASES = {"producers": "load", "readers": "load", "members": "load", "sentinel": "final", "final": "final"}
_OF_A_PHASE = frozenset(("send", "sentinel", "poll", "assign", "seek", "idle", "end-offset", "resume", "offset-commit"))


#: The least share of polls that have a high watermark. After an error, librdkafka knows none until the next answer.
LEAST_WITH_WATERMARK = 0.5


def strange(account: HistoryAccount, declared: DeclaredProcess | None) -> Iterator[str]:
    """One line for each kind of row that this history cannot have. Roles are judged only if the process is declared."""
    for f, outcome in sorted(account.rows):
        known = OUTCOMES.get(f)
        if known is None:
            yield f"the history {account.file} has {f}/{outcome} rows, but there is no such function"
        elif outcome not in known:
            yield f"the history {account.file} has {f}/{outcome} rows; {f} is always {' or '.join(sorted(known))}"
    if account.polls_without_offset:
        yield f"the history {account.file} has {account.polls_without_offset} poll rows without an offset"
    if account.polls_without_value:
        yield (
            f"the history {account.file} has {account.polls_without_value} poll rows that do not say what was read, "
            "or why that cannot be told"
        )
    for f, (count, first) in sorted(account.without_times.items()):
        yield (
            f"the history {account.file} has {how_many(count, f'{f} row')} with impossible times "
            f"(below 0, or ended before it began); the first is {first}"
        )
    polls = account.rows.get(("poll", "ok"), (0, 0))[0]
    if account.polls_with_watermark < LEAST_WITH_WATERMARK * polls:
        yield (
            f"the history {account.file} has {polls} poll rows of which {account.polls_with_watermark} tell a high "
            "watermark, but every client knows one as soon as it is handed something"
        )
    for session, topic, partition in sorted(account.unassigned)[:5]:
        where = f"{topic}-{partition} in session {session}"
        yield f"the history {account.file} has polls of {where}, which was not assigned it"
    for (topic, partition), offset in sorted(account.began.items())[:5]:
        # readers of a run begin at 0; no check would miss records below a higher first offset
        if offset != 0:
            yield f"{account.process} was first assigned {topic}-{partition} at offset {offset}, not at 0"
    if others := sorted(account.writers - {account.process}):
        yield f"the history {account.file} has rows that {', '.join(others[:5])} wrote, not {account.process}"
    if declared is not None:
        yield from _of_another_role(account, declared)


def _of_another_role(account: HistoryAccount, declared: DeclaredProcess) -> Iterator[str]:
    """Rows that belong to another role or phase. For example, a reader's ``reserve`` row could excuse a phantom."""
    for f in sorted({f for f, _ in account.rows}):
        if declared.role not in _ROLES.get(f, (declared.role,)):
            yield f"the history {account.file} has {f} rows, which {account.process} cannot have ({declared.role})"
    if declared.role == "sentinel" and any(stream < SENTINEL_STREAM for stream in account.streams):
        yield f"the history {account.file} has rows of streams that do not belong to a sentinel"
    wanted = _PHASES.get(declared.role)
    for f, phase in sorted(account.phases):
        if f in _OF_A_PHASE and phase != wanted:
            yield f"the history {account.file} has {f} rows of the phase {phase}; {declared.role} do that in {wanted}"
