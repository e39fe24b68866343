"""Is a topic that someone asks for one that we can make? Names, numbers, placements. Pure (Kafka's AdminZkClient).

Owns the checks of CreateTopics and CreatePartitions and the texts of their errors. Does not own configuration keys
(``cluster.config``) nor what is written and sent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cluster.controller.assignment import AssignmentError, assign_added_partitions, assign_new_topic
from cluster.protocol.errors import ErrorCode
from cluster.seams.randomness import Random

#: What a client sends for "the broker's default".
USE_DEFAULT = -1
MAX_NAME_LENGTH = 249
#: Partitions that one request may make, as Kafka's own controller has it (KRaft: MAX_PARTITIONS_PER_BATCH). Ten bytes
#: of a request could otherwise ask for two thousand million of them, and the controller would make the list.
MAX_PARTITIONS_AT_ONCE = 10_000
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")

Assignment = Mapping[int, tuple[int, ...]]


class TopicError(Exception):
    """A topic is refused; ``error_code`` and the text go to the client."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


@dataclass(frozen=True, slots=True)
class TopicRequest:
    """A topic to be made, as it is asked for. ``assignments`` is empty unless the client places the replicas itself.

    Partitions and keys may be named twice, which is refused or not when the topic is planned.
    """

    name: str
    partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, tuple[int, ...]]] = ()
    config: Sequence[tuple[str, str | None]] = ()


class GrowthRequest(NamedTuple):
    """A topic to be given more partitions: ``partitions`` is the new total. ``assignments`` are the replicas of each
    added one, None unless the client places them itself."""

    name: str
    partitions: int
    assignments: Sequence[tuple[int, ...]] | None = None


def is_legal_name(name: str) -> bool:
    """Whether a topic may be called so; of Kafka's rules, which also keep its directory where it belongs."""
    try:
        check_name(name, ())
    except TopicError:
        return False
    return True


def check_name(name: str, existing: Collection[str]) -> None:
    """Raises TopicError INVALID_TOPIC_EXCEPTION or TOPIC_ALREADY_EXISTS."""
    invalid = ErrorCode.INVALID_TOPIC_EXCEPTION
    if not name:
        raise TopicError(invalid, "Topic name is invalid: the empty string is not allowed")
    if name in (".", ".."):
        raise TopicError(invalid, "Topic name is invalid: '.' or '..' is not allowed")
    if len(name) > MAX_NAME_LENGTH:
        raise TopicError(
            invalid, f"Topic name is invalid: the length of '{name}' is longer than the max allowed length 249"
        )
    if not _LEGAL_NAME.fullmatch(name):
        raise TopicError(
            invalid,
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'",
        )
    if name in existing:
        raise TopicError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    # Kafka's metric names turn dots into underscores, so names that differ in nothing else are refused.
    collisions = sorted(other for other in existing if other.replace(".", "_") == name.replace(".", "_"))
    if collisions:
        raise TopicError(invalid, f"Topic '{name}' collides with existing topics: {', '.join(collisions)}")


def plan_assignment(
    request: TopicRequest,
    live: Collection[int],
    random: Random,
    *,
    default_partitions: int,
    default_replication_factor: int,
    room: int = MAX_PARTITIONS_AT_ONCE,
) -> Assignment:
    """Where the replicas of a new topic go. ``room`` is how many partitions the request may still make. Raises
    TopicError."""
    assignments = _numbered(request.assignments)
    if assignments:
        if request.partitions != USE_DEFAULT or request.replication_factor != USE_DEFAULT:
            raise TopicError(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at "
                "the same time.",
            )
        _check_room(len(assignments), room)
        return check_manual_assignment(assignments, live)
    partitions = default_partitions if request.partitions == USE_DEFAULT else request.partitions
    factor = default_replication_factor if request.replication_factor == USE_DEFAULT else request.replication_factor
    if partitions < 1:
        raise TopicError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    _check_room(partitions, room)
    try:
        return assign_new_topic(sorted(live), partitions, factor, random)
    except AssignmentError as error:
        raise TopicError(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from error


def _numbered(assignments: Iterable[tuple[int, tuple[int, ...]]]) -> Assignment:
    numbered: dict[int, tuple[int, ...]] = {}
    for number, replicas in assignments:
        if number in numbered:
            raise TopicError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Partition {number} is assigned twice.")
        numbered[number] = replicas
    return numbered


def _check_room(partitions: int, room: int) -> None:
    if partitions > room:
        raise TopicError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def check_manual_assignment(
    assignments: Mapping[int, tuple[int, ...]], live: Collection[int], *, first_partition: int = 0
) -> Assignment:
    """A client's own placement, as it is, or TopicError INVALID_REPLICA_ASSIGNMENT (INVALID_REPLICATION_FACTOR for
    replica lists of different lengths)."""
    invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    expected = list(range(first_partition, first_partition + len(assignments)))
    if sorted(assignments) != expected:
        raise TopicError(invalid, f"Partitions should be a consecutive 0-based integer sequence, got {[*assignments]}")
    factor = len(assignments[first_partition])
    for partition in expected:
        replicas = assignments[partition]
        if not replicas:
            raise TopicError(invalid, f"Partition {partition} has no replicas")
        if len(set(replicas)) != len(replicas):
            raise TopicError(invalid, f"Duplicate replica assignment found: partition {partition} on {[*replicas]}")
        if len(replicas) != factor:
            raise TopicError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"All partitions must have the same number of replicas: partition {partition} has {len(replicas)}, "
                f"partition {first_partition} has {factor}",
            )
        unknown = sorted(set(replicas) - set(live))
        if unknown:
            raise TopicError(invalid, f"Unknown broker(s) in replica assignment: {unknown}; live: {sorted(live)}")
    return {partition: tuple(assignments[partition]) for partition in expected}


def plan_added_partitions(
    existing: Mapping[int, tuple[int, ...]],
    total: int,
    assignments: Sequence[tuple[int, ...]] | None,
    live: Collection[int],
    room: int = MAX_PARTITIONS_AT_ONCE,
) -> Assignment:
    """The partitions that CreatePartitions adds, up to ``total``; ``room`` as above. Raises TopicError."""
    present = len(existing)
    if total <= present:
        detail = f"Topic currently has {present} partitions, which is higher than the requested {total}."
        if total == present:
            detail = f"Topic already has {present} partitions."
        raise TopicError(ErrorCode.INVALID_PARTITIONS, detail)
    _check_room(total - present, room)
    if assignments is None:
        try:
            return assign_added_partitions(sorted(live), dict(existing), total - present)
        except AssignmentError as error:
            raise TopicError(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from error
    if len(assignments) != total - present:
        raise TopicError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Increasing the number of partitions by {total - present} but {len(assignments)} assignments provided.",
        )
    numbered = {present + index: tuple(replicas) for index, replicas in enumerate(assignments)}
    factor = len(existing[min(existing)])
    if any(len(replicas) != factor for replicas in numbered.values()):
        raise TopicError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Existing partitions have {factor} replicas each; the added ones must have as many.",
        )
    return check_manual_assignment(numbered, live, first_partition=present)
