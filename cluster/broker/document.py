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
including idempotent ones, consumers that assign partitions and offsets, and admin clients for topics and settings.
**Consumer groups, transactions, authentication and ACLs are not supported.**

| Request | Response |
| --- | --- |
| to subscribe with a `group.id`, or committed offsets | INVALID_REQUEST from FindCoordinator, with the reason |
| a `transactional.id` | CLUSTER_AUTHORIZATION_FAILED from FindCoordinator, with the reason, and from InitProducerId |
| any other request that is not listed here | the connection is closed; most clients send only what ApiVersions offers |

The broker's log names the first client that requested a group and the first that requested a transaction, with the
reason.

- **librdkafka** (confluent-kafka, kcat, ...): `poll` returns the error once, with the reason. This also happens to a
  consumer that assigns its partitions, because it needs a `group.id` and looks for its coordinator anyway: keep
  polling, and records follow. Set `enable.auto.commit=false`; otherwise `close` waits 45 s for a coordinator to commit
  to. `init_transactions` fails with a fatal error. `kcat -G` exits; `kcat -C` has no group and works.
- **kafka-python, aiokafka**: with a `group_id`, the first poll or `start` raises `InvalidRequestError`; with
  `group_id=None` and `assign`, everything works. Transactions raise at `init_transactions` or `start`.
- **Java** (according to its source): `poll` throws `InvalidRequestException`, which refers to the broker's log, and
  `initTransactions` throws with the reason. `assign` without `group.id` works.

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
    ApiKey.OFFSET_COMMIT: "at the group's coordinator, as all below until ListGroups",
    ApiKey.OFFSET_FETCH: "",
    ApiKey.FIND_COORDINATOR: "of groups; creates `__consumer_offsets`; for transactions always an error (above)",
    ApiKey.JOIN_GROUP: "",
    ApiKey.HEARTBEAT: "",
    ApiKey.LEAVE_GROUP: "",
    ApiKey.SYNC_GROUP: "",
    ApiKey.DESCRIBE_GROUPS: "",
    ApiKey.LIST_GROUPS: "the groups of one broker",
    ApiKey.API_VERSIONS: "",
    ApiKey.CREATE_TOPICS: "at the controller",
    ApiKey.DELETE_TOPICS: "at the controller",
    ApiKey.DELETE_RECORDS: "",
    ApiKey.INIT_PRODUCER_ID: "for idempotence; a transactional id is refused (above)",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "",
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
}

#: What is not served, by what it is for.
_ABSENT: Mapping[str, tuple[ApiKey, ...]] = {
    "transactions": (
        ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS, ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS,
    ),
    "authentication": (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE),
    "ACLs": (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS),
}  # fmt: skip


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
