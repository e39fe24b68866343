"""The reference of supported requests, generated from the tables: ``python -m cluster.broker.document``.

Owns the text. A test checks that ``docs/apis.md`` is exactly this, and that the broker's listeners serve exactly that.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from cluster.protocol.apis import INTER_BROKER, PRODUCE_MIN_VERSION, SUPPORTED, ApiKey

_HEAD = f"""# What is served

<!-- Made by `python -m cluster.broker.document`; do not edit. -->

The brokers speak the protocol of Kafka 3.8. Any client that uses only the requests below works with them: producers,
including idempotent ones and those with transactions, consumers that subscribe as a group or assign partitions and
offsets, and admin clients for topics, settings, groups and transactions. **Authentication and ACLs are not supported.**

A request that is not listed here closes the connection; most clients send only what ApiVersions offers.

Groups are those of `group.protocol=classic` ([groups.md](groups.md)). `__consumer_offsets` is created when a client
first looks for the coordinator of a group; librdkafka also does so if it only assigns partitions. The topic needs
`offsets.topic.replication.factor` live brokers: with fewer of them, clients wait, and the broker's log has the reason.

Transactions ([transactions.md](transactions.md)) are those of Kafka before KIP-890's second part. `__transaction_state`
is created when a client first looks for the coordinator of a transactional ID. It needs
`transaction.state.log.replication.factor` live brokers.

## For clients

Versions are those that ApiVersions offers. Of Produce, the brokers support {PRODUCE_MIN_VERSION} and newer; ApiVersions
also offers older versions, because librdkafka does not compress if 0 is not offered.
"""

#: What each API is used for; every one of ``ApiKey`` has its words.
_CLIENTS: Mapping[ApiKey, str] = {
    ApiKey.PRODUCE: "acks 0, 1 and all; idempotence; every codec",
    ApiKey.FETCH: "with fetch sessions",
    ApiKey.LIST_OFFSETS: "earliest, latest, by time, the newest time",
    ApiKey.METADATA: "creates a requested topic if `auto.create.topics.enable`",
    ApiKey.OFFSET_COMMIT: "at the group's coordinator",
    ApiKey.OFFSET_FETCH: "at the group's coordinator",
    ApiKey.FIND_COORDINATOR: "of groups and transactional ids",
    ApiKey.JOIN_GROUP: "at the group's coordinator",
    ApiKey.HEARTBEAT: "at the group's coordinator",
    ApiKey.LEAVE_GROUP: "at the group's coordinator",
    ApiKey.SYNC_GROUP: "at the group's coordinator",
    ApiKey.DESCRIBE_GROUPS: "at the group's coordinator",
    ApiKey.LIST_GROUPS: "the groups of one broker",
    ApiKey.API_VERSIONS: "",
    ApiKey.CREATE_TOPICS: "at the controller",
    ApiKey.DELETE_TOPICS: "at the controller",
    ApiKey.DELETE_RECORDS: "",
    ApiKey.INIT_PRODUCER_ID: "with a transactional id at its coordinator",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "",
    ApiKey.ADD_PARTITIONS_TO_TXN: "at the transaction's coordinator",
    ApiKey.ADD_OFFSETS_TO_TXN: "at the transaction's coordinator",
    ApiKey.END_TXN: "at the transaction's coordinator",
    ApiKey.TXN_OFFSET_COMMIT: "at the group's coordinator",
    ApiKey.DESCRIBE_CONFIGS: "topics and brokers",
    ApiKey.ALTER_CONFIGS: "topics and brokers",
    ApiKey.DESCRIBE_LOG_DIRS: "",
    ApiKey.CREATE_PARTITIONS: "at the controller",
    ApiKey.DELETE_GROUPS: "at the group's coordinator",
    ApiKey.ELECT_LEADERS: "at the controller",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "topics and brokers",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "at the controller",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "at the controller",
    ApiKey.OFFSET_DELETE: "at the group's coordinator",
    ApiKey.DESCRIBE_CLUSTER: "",
    ApiKey.DESCRIBE_PRODUCERS: "",
    ApiKey.DESCRIBE_TRANSACTIONS: "at the transaction's coordinator",
    ApiKey.LIST_TRANSACTIONS: "the transactional ids of one broker",
}

#: What is not served, by what it is for.
_ABSENT: Mapping[str, tuple[ApiKey, ...]] = {
    "authentication": (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE),
    "ACLs": (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS),
}


def document() -> str:
    """The whole of docs/apis.md."""
    lines = [_HEAD, "| Request | Key | Versions | |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {name(key)} | {key.value} | {_window(SUPPORTED[key])} | {_CLIENTS[key]} |" for key in sorted(SUPPORTED)
    ]
    lines += ["", "## Between brokers", "", "On the inter-broker listener, in addition to those above.", ""]
    lines += ["| Request | Key | Version |", "| --- | --- | --- |"]
    lines += [f"| {name(key)} | {key.value} | {_window(INTER_BROKER[key])} |" for key in sorted(INTER_BROKER)]
    lines += ["", "## Not served", "", "| For | Requests |", "| --- | --- |"]
    lines += [
        f"| {what} | {', '.join(f'{name(key)} ({key.value})' for key in keys)} |" for what, keys in _ABSENT.items()
    ]
    return "\n".join([*lines, "", "Requests with a higher key are not supported either.", ""])


def absent() -> set[ApiKey]:
    """What the document lists as not served."""
    return {key for keys in _ABSENT.values() for key in keys}


def name(key: ApiKey) -> str:
    """``LeaderAndIsr``, as Kafka's documents write it."""
    return "".join(part.capitalize() for part in key.name.split("_"))


def _window(window: tuple[int, int]) -> str:
    least, greatest = window
    return str(least) if least == greatest else f"{least} to {greatest}"


if __name__ == "__main__":
    sys.stdout.write(document())
