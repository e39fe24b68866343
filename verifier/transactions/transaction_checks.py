"""Runs the checks of transactions over a run, and sums up their findings.

Owns the lists of checks and the summing up. Also runs the check of end offsets, which open transactions hold back, and
the comparison of the replicas of internal topics. Does not own the checks (``verifier/checks``) or their evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from verifier.checks.aborted_commit import aborted_commit
from verifier.checks.bank_total import Bank, bank_total
from verifier.checks.g0 import write_cycle
from verifier.checks.g1a import aborted_read
from verifier.checks.g1c import circular_reads
from verifier.checks.hanging_transaction import hanging_transaction
from verifier.checks.internal_divergence import internal_divergence
from verifier.checks.marker_audit import marker_audit
from verifier.checks.precommitted_read import precommitted_read
from verifier.checks.torn_transaction import torn_transaction
from verifier.checks.undecided_commit import undecided_commit
from verifier.checks.wrong_end_offset import wrong_end_offset
from verifier.checks.zombie_write import zombie_write
from verifier.coordinators.internal_replicas import internal_partitions
from verifier.evidence.history_parts import history_parts
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.facts import Found
from verifier.transactions.client_rows import COLUMNS, FUNCTIONS, ClientEvidence, ClientTransaction, client_evidence
from verifier.transactions.ends import ends_of
from verifier.transactions.evidence import transaction_evidence
from verifier.transactions.logs import LogTransactions
from verifier.transactions.model import Anomalous, TransactionEvidence
from verifier.transactions.state_records import TopicPartition

CHECKS: tuple[Callable[[TransactionEvidence], Iterator[Anomalous]], ...] = (
    torn_transaction,
    marker_audit,
    hanging_transaction,
    zombie_write,
)

CLIENT_CHECKS: tuple[Callable[[ClientEvidence], Iterator[Anomalous]], ...] = (
    aborted_read,
    precommitted_read,
    circular_reads,
    write_cycle,
)


def transactional(directory: RunDirectory, run: RunModel) -> tuple[Found, ...]:
    """The findings of all these checks in a run. Without transactions, only end offsets are checked. Raises OSError."""
    evidence = transaction_evidence(directory, run)
    if evidence is None:
        return tuple(summed_up(_wrong_ends(directory, run)))
    seen = client_evidence(history_rows(directory.history_dir))
    found = [anomaly for check in CLIENT_CHECKS for anomaly in check(seen)]
    found += [*aborted_commit(seen, evidence), *undecided_commit(seen, evidence)]
    if (bank := bank_of(run)) is not None:
        found += bank_total(seen, bank)
    found += _wrong_ends(directory, run, seen.transactions, evidence.logs)
    return tuple(summed_up([*audit(evidence), *found]))


def of_internal_replicas(directory: RunDirectory, run: RunModel) -> tuple[Found, ...]:
    """The differences between replicas of internal topics and of the groups' output. Raises ``OSError``."""
    return tuple(summed_up(internal_divergence(internal_partitions(directory, run))))


def _wrong_ends(
    directory: RunDirectory,
    run: RunModel,
    transactions: Sequence[ClientTransaction] = (),
    logs: Mapping[TopicPartition, LogTransactions] | None = None,
) -> list[Anomalous]:
    if run.may_elect_uncleanly:
        return []
    return list(wrong_end_offset(ends_of(directory.history_dir, transactions, logs)))


def bank_of(run: RunModel) -> Bank | None:
    """The bank of a run with the workload kind ``bank``; None for others, or if a partition has no sentinel."""
    if run.experiment.get("resolved", {}).get("workload", {}).get("kind") != "bank":
        return None
    ends = {(final.topic, final.partition): final.sentinel_offset for final in run.final}
    known = {place: end for place, end in ends.items() if end is not None}
    return Bank(run.run_id, known) if known and len(known) == len(ends) else None


def history_rows(histories: Path) -> Iterator[dict[str, Any]]:
    """The rows of all histories about transactions, sends and polls."""
    for part in history_parts(histories, (*FUNCTIONS, "send", "poll"), COLUMNS):
        yield from part.to_pylist()


def audit(evidence: TransactionEvidence) -> list[Anomalous]:
    """Every anomaly in logs and decisions, check by check. Pure."""
    return [anomaly for check in CHECKS for anomaly in check(evidence)]


def summed_up(found: Iterable[Anomalous]) -> Iterator[Found]:
    """One finding for each check, cause and partition. Its example is the anomaly at the lowest offset."""
    groups: dict[tuple[Any, ...], list[Anomalous]] = defaultdict(list)
    for each in found:
        groups[each.check, each.cause, each.topic, each.partition].append(each)
    for (check, cause, topic, partition), members in groups.items():
        first = min(members, key=lambda each: -1 if each.offset is None else each.offset)
        count = len(members)
        yield Found(check, cause, topic, partition, count, count, None, None, first.offset, 1, first.detail)
