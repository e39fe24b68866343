"""The kinds of loads, which say what the users of a load do, and the plan of loads with transactions. Pure.

In a load of the kind ``streams``, each producer writes one stream. Other kinds have their own users
(``loadgen.users``). A plan is written as ``{partitions: 3, records: 12, aborts: 0.1, zombies: 0, rivals: 1, late: 0}``;
these are the defaults. Does not carry out a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.choices import unit
from loadgen.spec import SpecError, numbers_of

STREAMS = "streams"
TRANSACTIONS, BANK = "transactions", "bank"
KINDS = (STREAMS, TRANSACTIONS, BANK)
#: The kinds whose producers have a ``transactional.id``.
TRANSACTIONAL = (TRANSACTIONS, BANK)
#: A transfer has a debit and a credit, so it needs two accounts; each account is a stream.
ACCOUNTS = 2

MOST_RECORDS = 100_000
#: The bounds of the time for which a producer rests after a rival fenced it: enough for some transactions of the rival.
RESTS_S = (1.0, 4.0)

#: A plan as it is written in YAML and JSON.
PlanSpec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TransactionPlan:
    """The transactions of one producer. Each writes ``records`` records in total to ``partitions`` partitions.

    A producer has one stream for each partition. ``aborts`` is the share of transactions that is aborted on purpose.
    ``zombies`` is the share in which another producer takes over the ``transactional.id``, halfway or before the end.
    The run id decides which transactions these are. ``rivals`` producers, each in another process, share a
    ``transactional.id``: a producer that was fenced takes it back after a while. The first ``late`` producers, which no
    other takes over, send the last record of each transaction after its end.
    """

    partitions: int = 3
    records: int = 12
    aborts: float = 0.1
    zombies: float = 0.0
    rivals: int = 1
    late: int = 0

    def is_aborted(self, run_id: int, producer: int, number: int) -> bool:
        """Whether transaction ``number`` of ``producer`` is to be aborted."""
        return unit(run_id ^ (producer << 40), number) < self.aborts

    def is_whole(self, kind: str, records: int) -> bool:
        """Whether a transaction with this many records may be committed. False if a transfer lacks one side."""
        return kind != BANK or records % self.partitions == 0

    def is_taken_over(self, run_id: int, producer: int, number: int) -> bool:
        """Whether the producer is a zombie in transaction ``number``: from its middle on, or ``is_taken_over_late``."""
        return unit(~run_id ^ (producer << 40), number) < self.zombies

    def is_taken_over_late(self, run_id: int, producer: int, number: int) -> bool:
        """Whether such a takeover comes only when all records are stored, by a producer with an open transaction."""
        return unit(~run_id ^ (producer << 40), number) < self.zombies / 2

    def rests_s(self, run_id: int, producer: int, instance: int) -> float:
        """How long the producer leaves its ``transactional.id`` to its rivals before its next instance takes it."""
        least_s, most_s = RESTS_S
        return least_s + (most_s - least_s) * unit(run_id ^ (producer << 20), instance) if self.rivals > 1 else 0.0


def parse_plan(kind: str, spec: PlanSpec | None) -> TransactionPlan:
    """Parse a plan as it is written in YAML. Raises SpecError."""
    plan = TransactionPlan()
    usual = ACCOUNTS if kind == BANK else plan.partitions
    defaults = {
        "partitions": usual, "records": plan.records, "aborts": plan.aborts, "zombies": 0.0, "rivals": 1, "late": 0,
    }  # fmt: skip
    partitions, records, aborts, zombies, rivals, late = numbers_of(
        "transactions", spec or {}, tuple(defaults), defaults
    )
    if kind == BANK and partitions != ACCOUNTS:
        raise SpecError(f"partitions of transactions is {ACCOUNTS} with kind: {BANK}: a debit and a credit")
    if partitions != int(partitions) or partitions < 1:
        raise SpecError(f"partitions of transactions is a number of at least 1, not {partitions:g}")
    if records != int(records) or not partitions <= records <= MOST_RECORDS or records % partitions:
        raise SpecError(
            f"records of transactions is a multiple of its {partitions:g} partitions and at most {MOST_RECORDS}, "
            f"not {records:g}"
        )
    for name, share in (("aborts", aborts), ("zombies", zombies)):
        if not 0 <= share < 1:
            raise SpecError(f"{name} of transactions is a share from 0 to below 1, not {share:g}")
    if rivals != int(rivals) or rivals < 1:
        raise SpecError(f"rivals of transactions is a number of at least 1, not {rivals:g}")
    if late != int(late) or late < 0:
        raise SpecError(f"late of transactions is a number of producers, not {late:g}")
    if late and rivals > 1:
        raise SpecError("late of transactions works only without rivals: nothing else has the ids of late producers")
    return TransactionPlan(int(partitions), int(records), aborts, zombies, int(rivals), int(late))


def streams_per_user(kind: str, spec: PlanSpec | None) -> int:
    """How many streams one user writes. Raises SpecError."""
    return parse_plan(kind, spec).partitions if kind in TRANSACTIONAL else 1


def least_processes(kind: str, spec: PlanSpec | None) -> int:
    """The least number of processes for its producers, since rivals are in different ones. Raises SpecError."""
    return parse_plan(kind, spec).rivals if kind in TRANSACTIONAL else 1


def check_kind(kind: str, spec: PlanSpec | None) -> None:
    """Raises SpecError for an unknown kind, for a wrong plan, and for a plan of a kind that has none."""
    if kind not in KINDS:
        raise SpecError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
    if kind in TRANSACTIONAL:
        parse_plan(kind, spec)
    elif spec:
        raise SpecError(f"transactions works only with kind: {' or '.join(TRANSACTIONAL)}, not with kind: {kind}")


def check_streams(kind: str, spec: PlanSpec | None, streams: int, partitions: int) -> None:
    """Whether that many streams can be shared out to the users, each stream of one on another partition.

    Raises SpecError.
    """
    each = streams_per_user(kind, spec)
    if each > partitions:
        raise SpecError(f"its transactions write to {each} partitions, and the topic has {partitions}")
    if streams % each:
        raise SpecError(f"its producers write {each} streams each: their number is a multiple of {each}, not {streams}")
    if kind in TRANSACTIONAL and streams // each % (rivals := parse_plan(kind, spec).rivals):
        raise SpecError(f"{rivals} of its producers share an id: their number is a multiple of {rivals}")
    if kind in TRANSACTIONAL and parse_plan(kind, spec).late > streams // each:
        raise SpecError(f"it has {streams // each} producers, and more of them are to be late")
