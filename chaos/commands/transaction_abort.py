"""``gapless transactions abort``: a marker for one partition where a transaction hangs, or a fence for a whole one.

Owns the choice between both, and the message for a refusal. Does not own the requests (``cluster.client.Admin``).
"""

from __future__ import annotations

import sys
from typing import Annotated, NamedTuple

import typer

from chaos.commands.cluster_admin import BROKERS, MOST_INT, MOST_LONG, MOST_SHORT, ServerOption, admin_of, sendable
from chaos.commands.up_state import DATA, Data
from chaos.exits import BadRequest, BadUsage, Exit
from cluster.client import Admin, AdminError
from cluster.process.one_line import printable
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition, partition_name

OPEN = "Ongoing"


class _AbortMarker(NamedTuple):
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


def abort(
    topic: Annotated[str | None, typer.Option(help="Topic of the partition where the transaction hangs.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Number of the partition.")] = None,
    start_offset: Annotated[
        int | None, typer.Option(min=0, help="First offset of the transaction in the partition.")
    ] = None,
    producer_id: Annotated[
        int | None, typer.Option(min=0, max=MOST_LONG, help="Instead of --start-offset, for brokers before Kafka 3.0.")
    ] = None,
    producer_epoch: Annotated[int | None, typer.Option(min=0, max=MOST_SHORT, help="With --producer-id.")] = None,
    coordinator_epoch: Annotated[int | None, typer.Option(min=-1, max=MOST_INT, help="With --producer-id.")] = None,
    transactional_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Abort the open transaction of this ID everywhere, and fence its producer."),
    ] = None,
    bootstrap_server: ServerOption = None,
    data: Data = DATA,
) -> int:
    """Print what was aborted. Exit status 1 if there is no such transaction."""
    by_hand = (producer_id, producer_epoch, coordinator_epoch)
    if transactional_id is not None:
        if any(each is not None for each in (topic, partition, start_offset, *by_hand)):
            raise BadUsage("--transactional-id aborts a whole transaction; give it without a partition and producer")
        with admin_of(bootstrap_server, data, transaction_reason) as admin:
            return _fence(admin, transactional_id)
    if topic is None or partition is None:
        raise BadUsage("transactions abort needs --topic and --partition, or --transactional-id")
    marker = _by_hand(start_offset, by_hand)
    with admin_of(bootstrap_server, data, transaction_reason, BROKERS) as admin:
        key = checked_partition(admin, topic, partition)
        marker = marker or _open_at(admin, key, start_offset)
        if marker is None:
            again = f"'gapless transactions describe-producers --topic {topic} --partition {partition}'"
            return _refused(
                f"no transaction begins at offset {start_offset} of {partition_name(key)}; {again} shows all"
            )
        admin.abort_transaction(key, *marker)
    print(printable(f"aborted the transaction of producer {marker.producer_id} in {partition_name(key)}"))
    return int(Exit.VALID)


def _by_hand(start_offset: int | None, given: tuple[int | None, int | None, int | None]) -> _AbortMarker | None:
    """The marker that the options specify; None if it must be looked up. Raises BadUsage for neither, and for both."""
    producer_id, producer_epoch, coordinator_epoch = given
    if start_offset is not None:
        if any(each is not None for each in given):
            raise BadUsage("--start-offset says which producer it is; give it without --producer-id and the epochs")
        return None
    if producer_id is None or producer_epoch is None or coordinator_epoch is None:
        raise BadUsage(
            "transactions abort needs --start-offset, or all of --producer-id, --producer-epoch and --coordinator-epoch"
        )
    return _AbortMarker(producer_id, producer_epoch, coordinator_epoch)


def _open_at(admin: Admin, key: TopicPartition, start_offset: int | None) -> _AbortMarker | None:
    for each in admin.describe_producers([key])[key]:
        if each.current_txn_start_offset == start_offset:
            return _AbortMarker(each.producer_id, each.producer_epoch, each.coordinator_epoch)
    return None


def _fence(admin: Admin, transactional_id: str) -> int:
    # Fencing an unknown ID would make it known.
    with sendable("--transactional-id"):
        state = admin.describe_transactions([transactional_id])[transactional_id].state
    if state != OPEN:
        return _refused(f"transactional ID {transactional_id} has no open transaction (its state is {state})")
    admin.fence_producers([transactional_id])
    print(printable(f"aborted the transaction of {transactional_id}, and fenced its producer"))
    return int(Exit.VALID)


def _refused(line: str) -> int:
    print(printable(f"gapless: {line}"), file=sys.stderr)
    return int(Exit.INVALID)


def checked_partition(admin: Admin, topic: str, partition: int) -> TopicPartition:
    """The partition if it exists. Raises BadRequest."""
    with sendable("--topic"):
        known = admin.describe_topics([topic])[topic].partitions
    if not known:
        raise BadRequest(f"--topic {topic}: there is no such topic")
    if partition not in known:
        raise BadRequest(f"--partition {partition}: the partitions of {topic} are 0 to {max(known)}")
    return topic, partition


def transaction_reason(error: AdminError | TimeoutError) -> str:
    """The message for a refusal, with a fix if there is one."""
    code = error.error_code if isinstance(error, AdminError) else ErrorCode.NONE
    if code is ErrorCode.UNSUPPORTED_VERSION and "WRITE_TXN_MARKERS" in str(error):
        own = "brokers take markers on the listener that they use among themselves"
        return f"{error}: {own}; give its addresses to --bootstrap-server"
    if code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return f"{error}; 'gapless transactions list' shows all"
    if code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        return f"{error}: the log knows a later epoch; see 'gapless transactions describe-producers'"
    return str(error)
