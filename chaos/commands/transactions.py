"""``gapless transactions``: list and describe transactions, find those that hang in a partition, and end them.

Owns options and output, as of Kafka's kafka-transactions (KIP-664). Does not own the requests (``cluster.client``),
which transactions hang (``hanging_transactions``), nor how one is aborted (``transaction_abort``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Annotated, Any

import typer

from chaos.commands.cluster_admin import (
    MOST_LONG,
    JsonOption,
    ServerOption,
    admin_of,
    print_table,
    sendable,
    status_with_missing,
)
from chaos.commands.hanging_transactions import OpenTransaction, hanging, open_transactions, still_open
from chaos.commands.transaction_abort import abort, checked_partition, transaction_reason
from chaos.commands.up_state import DATA, Data
from chaos.exits import BadRequest, BadUsage, Exit
from cluster.client import Admin, AdminError
from cluster.client.partition_calls import ProducerState
from cluster.client.transaction_descriptions import NO_TRANSACTION, DescribedTransaction, ListedTransaction
from cluster.coordinator.transaction.describing import STATES
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import SystemClock
from cluster.seams.units import ms_of_minutes
from cluster.topic_partition import TopicPartition, partition_name

#: The most partitions in one request to a broker, as in Kafka's tool.
PARTITIONS_AT_ONCE = 500
MOST_MINUTES = 1_000_000
#: The states of transactions that are not over.
UNDECIDED = ("Ongoing", "PrepareCommit", "PrepareAbort")
DESCRIBED_HEADS = (
    *("transactional_id", "coordinator", "producer_id", "producer_epoch", "state", "timeout_ms"),
    *("start_time_ms", "duration_ms", "partitions"),
)

#: Restricts a command to partitions with a replica on this broker.
BrokerOption = Annotated[
    int | None, typer.Option("--broker-id", min=0, metavar="ID", help="Ask this broker's replicas.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    transactions = typer.Typer(
        invoke_without_command=True, help="List and describe transactions, and find and abort those that hang."
    )
    transactions.callback()(_chosen)
    transactions.command("list", help="List the transactional IDs of a cluster and their states.")(list_transactions)
    transactions.command("describe", help="Show the transaction of an ID, and its partitions.")(describe)
    transactions.command("describe-producers", help="Show the producers that a partition remembers.")(
        describe_producers
    )
    transactions.command("abort", help="Abort a transaction that hangs in a partition, or that an ID has left open.")(
        abort
    )
    transactions.command("find-hanging", help="Find transactions that no coordinator will end.")(find_hanging)
    app.add_typer(transactions, name="transactions")


def _chosen(context: typer.Context) -> None:
    """List and describe transactions, and find and abort those that hang."""
    if context.invoked_subcommand is None:
        raise BadUsage("transactions: say what to do: list, describe, describe-producers, abort or find-hanging")


def list_transactions(
    state: Annotated[list[str] | None, typer.Option(help="Only in this state, such as Ongoing; repeatable.")] = None,
    producer_id: Annotated[
        list[int] | None, typer.Option(min=0, max=MOST_LONG, help="Only of this producer; repeatable.")
    ] = None,
    duration_filter: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_LONG,
            metavar="MS",
            help="Only transactions open for longer than this. [dim]default: all[/dim]",
        ),
    ] = None,
    bootstrap_server: ServerOption = None,
    data: Data = DATA,
    as_json: JsonOption = False,
) -> int:
    """Print one line for each transactional ID."""
    if unknown := sorted(set(state or ()) - STATES):
        raise BadRequest(f"--state {unknown[0]}: no transaction has this state; there are {', '.join(sorted(STATES))}")
    # for a broker, a finished transaction still lasts, and one that never began started in 1970
    states = state or (() if duration_filter is None else UNDECIDED)
    longer_than_ms = -1 if duration_filter is None else duration_filter
    with admin_of(bootstrap_server, data, transaction_reason) as admin:
        found = admin.list_transactions(states, producer_id or (), longer_than_ms=longer_than_ms)
    if as_json:
        print(json.dumps({each.transactional_id: asdict(each) for each in found}, indent=2))
    else:
        heads = [field.name for field in fields(ListedTransaction)]
        print_table(heads, [[getattr(each, head) for head in heads] for each in found])
    return int(Exit.VALID)


def describe(
    transactional_id: Annotated[list[str], typer.Option(metavar="ID", help="Transactional ID; repeatable.")],
    bootstrap_server: ServerOption = None,
    data: Data = DATA,
    as_json: JsonOption = False,
) -> int:
    """Print a line for each ID. Exit status 1 if one does not exist."""
    with admin_of(bootstrap_server, data, transaction_reason) as admin, sendable("--transactional-id"):
        found = {each.transactional_id: each for each in _described(admin, transactional_id)}
    missing = [each for each in transactional_id if each not in found]
    if as_json:
        told = {each.transactional_id: {**asdict(each), "duration_ms": _duration_ms(each)} for each in found.values()}
        print(json.dumps(told, indent=2))
    elif found:
        print_table(DESCRIBED_HEADS, map(_row, found.values()))
    return status_with_missing("transactional ID", missing, "transactions list")


def describe_producers(
    topic: Annotated[str, typer.Option(help="Topic of the partition.")],
    partition: Annotated[int, typer.Option(min=0, help="Number of the partition.")],
    broker_id: BrokerOption = None,
    bootstrap_server: ServerOption = None,
    data: Data = DATA,
    as_json: JsonOption = False,
) -> int:
    """Print a line for each producer."""
    with admin_of(bootstrap_server, data, transaction_reason) as admin:
        key = checked_partition(admin, topic, partition)
        _check_broker(admin, broker_id)
        found = admin.describe_producers([key], broker_id)[key]
    if as_json:
        print(json.dumps([asdict(each) for each in found], indent=2))
    else:
        heads = [field.name for field in fields(ProducerState)]
        print_table(
            heads, [[None if (value := getattr(each, head)) == -1 else value for head in heads] for each in found]
        )
    return int(Exit.VALID)


def find_hanging(
    broker_id: BrokerOption = None,
    topic: Annotated[str | None, typer.Option(help="Only partitions of this topic.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition of the topic.")] = None,
    max_transaction_timeout: Annotated[
        int,
        typer.Option(
            min=0, max=MOST_MINUTES, metavar="MINUTES", help="Only transactions whose last record is older than this."
        ),
    ] = 15,
    bootstrap_server: ServerOption = None,
    data: Data = DATA,
    as_json: JsonOption = False,
) -> int:
    """Print a line for each partition where a transaction hangs."""
    if topic is None and broker_id is None:
        raise BadUsage("transactions find-hanging needs --topic or --broker-id, to limit the search")
    if partition is not None and topic is None:
        raise BadUsage("--partition needs --topic")
    longer_than_ms = ms_of_minutes(max_transaction_timeout)
    with admin_of(bootstrap_server, data, transaction_reason) as admin:
        _check_broker(admin, broker_id)
        searched = _searched(admin, broker_id, topic, partition)
        candidates: list[OpenTransaction] = []
        for some in _parts(searched):
            producers = admin.describe_producers(some, broker_id)
            candidates += open_transactions(producers, longer_than_ms, SystemClock().wall_ms())
        found = _without_end(admin, candidates) if candidates else []
    if as_json:
        print(json.dumps([each._asdict() for each in found], indent=2))
    else:
        print_table(OpenTransaction._fields, found)
    return int(Exit.VALID)


def _without_end(admin: Admin, candidates: Sequence[OpenTransaction]) -> list[OpenTransaction]:
    listed = admin.list_transactions(producer_ids={each.producer_id for each in candidates})
    found = hanging(candidates, _described(admin, [each.transactional_id for each in listed]))
    partitions = sorted({(each.topic, each.partition) for each in found})
    return [one for some in _parts(partitions) for one in still_open(found, admin.describe_producers(some))]


def _searched(admin: Admin, broker_id: int | None, topic: str | None, partition: int | None) -> list[TopicPartition]:
    if topic is not None and partition is not None:
        return [checked_partition(admin, topic, partition)]
    names = admin.list_topics() if topic is None else [checked_partition(admin, topic, 0)[0]]
    return sorted(
        (name, number)
        for name, view in admin.describe_topics(names).items()
        for number, described in view.partitions.items()
        if broker_id is None or broker_id in described.replicas
    )


def _parts(partitions: Sequence[TopicPartition]) -> Iterator[Sequence[TopicPartition]]:
    for start in range(0, len(partitions), PARTITIONS_AT_ONCE):
        yield partitions[start : start + PARTITIONS_AT_ONCE]


def _described(admin: Admin, transactional_ids: Iterable[str]) -> Iterator[DescribedTransaction]:
    """The transactional ids that exist, described."""
    for transactional_id in dict.fromkeys(transactional_ids):
        try:
            yield admin.describe_transactions([transactional_id])[transactional_id]
        except AdminError as error:
            if error.error_code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise


def _check_broker(admin: Admin, broker_id: int | None) -> None:
    if broker_id is not None and broker_id not in (brokers := admin.describe_cluster().brokers):
        raise BadRequest(f"--broker-id {broker_id}: no such broker is alive; there are {', '.join(map(str, brokers))}")


def _duration_ms(described: DescribedTransaction) -> int | None:
    started_ms = described.start_timestamp_ms
    return None if started_ms == NO_TRANSACTION else max(0, SystemClock().wall_ms() - started_ms)


def _row(described: DescribedTransaction) -> tuple[Any, ...]:
    return (
        described.transactional_id,
        described.coordinator_id,
        described.producer_id,
        described.producer_epoch,
        described.state,
        described.timeout_ms,
        None if described.start_timestamp_ms == NO_TRANSACTION else described.start_timestamp_ms,
        _duration_ms(described),
        ",".join(map(partition_name, described.partitions)) or None,
    )
