"""The checks of transactions that need only the replicas' bytes, asked of a run. Owns their list and the sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from verifier.checks.hanging_transaction import hanging_transaction
from verifier.checks.marker_audit import marker_audit
from verifier.checks.torn_transaction import torn_transaction
from verifier.checks.zombie_write import zombie_write
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.facts import Found
from verifier.transactions.evidence import transaction_evidence
from verifier.transactions.model import Anomalous, TransactionEvidence

CHECKS: tuple[Callable[[TransactionEvidence], Iterator[Anomalous]], ...] = (
    torn_transaction,
    marker_audit,
    hanging_transaction,
    zombie_write,
)


def transactional(directory: RunDirectory, run: RunModel) -> tuple[Found, ...]:
    """What the checks find in a run; nothing if it has no transactions. Raises ``OSError``."""
    evidence = transaction_evidence(directory, run)
    return () if evidence is None else tuple(summed_up(audit(evidence)))


def audit(evidence: TransactionEvidence) -> list[Anomalous]:
    """Every anomaly, check by check. Pure."""
    return [anomaly for check in CHECKS for anomaly in check(evidence)]


def summed_up(found: Iterable[Anomalous]) -> Iterator[Found]:
    """One for each check, cause and partition, with the one at the lowest offset as its example."""
    groups: dict[tuple[Any, ...], list[Anomalous]] = defaultdict(list)
    for each in found:
        groups[each.check, each.cause, each.topic, each.partition].append(each)
    for (check, cause, topic, partition), members in groups.items():
        first = min(members, key=lambda each: -1 if each.offset is None else each.offset)
        count = len(members)
        yield Found(check, cause, topic, partition, count, count, None, None, first.offset, 1, first.detail)
