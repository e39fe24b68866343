"""The reference of all configuration keys, made from the tables: ``python -m cluster.config.document``.

Owns the text around the tables. A test holds that ``docs/configuration.md`` is exactly this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from cluster.config.admin import ADMIN_KEYS
from cluster.config.broker_keys import REFUSED, SECTIONS
from cluster.config.consumer import CONSUMER_KEYS
from cluster.config.keys import INT_MAX, LONG_MAX, Key
from cluster.config.librdkafka import CONSUMER_KEYS as CONFLUENT_CONSUMER
from cluster.config.librdkafka import PRODUCER_KEYS as CONFLUENT_PRODUCER
from cluster.config.producer import PRODUCER_KEYS
from cluster.config.profiles import PROFILES
from cluster.config.topic import BROKER_SYNONYMS, TOPIC_KEYS

_HEAD = """# Configuration

<!-- Made by `python -m cluster.config.document`; do not edit. -->

Keys, types and defaults are Kafka 3.8's. An unknown key is an error that names the nearest known one; so is a value
that does not fit, and so are settings that contradict each other. A key marked *carried* is accepted and reported, so
that a file you have works as it is, and changes nothing here.

Where to set them:

- `gapless run` and `gapless up`: `--broker-config`, `--topic-config`, `--producer-config` and `--consumer-config`,
  each `KEY=VALUE` and repeatable. `--acks`, `--idempotence` and the like are shorthands for the same keys.
- `gapless broker --config FILE`: a properties file, and over it the environment by the rule of Kafka's images:
  `KAFKA_LOG_DIRS` is `log.dirs` (a single underscore is a dot, two are an underscore, three are a dash).

Contradictions that are refused: `acks` other than `all`, `retries` 0, or more than 5 requests in flight together with
`enable.idempotence` true or a `transactional.id` (without an explicit `true` they turn idempotence off, as in Kafka);
a `delivery.timeout.ms` below `linger.ms` + `request.timeout.ms`; a `replica.fetch.wait.max.ms` that is not below
`replica.lag.time.max.ms` and `replica.socket.timeout.ms`; a `heartbeat.interval.ms` that is not below
`session.timeout.ms`; listeners that are advertised or used between brokers and do not exist. A `min.insync.replicas`
above the replication factor is warned about: Kafka accepts it too, and then refuses every acks=all produce.

Requests on the brokers' own listener are obeyed, no matter who sends them: they can delete topics, depose leaders
and hide brokers. Which one that is: `inter.broker.listener.name` (or `security.inter.broker.protocol`) if set;
else `PLAINTEXT` if that is on the loopback; else a listener `BROKERS` on the loopback, which the broker adds while
it advertises this machine's own address to clients. Brokers on several machines need one that you name, in a network
that they alone reach: a broker whose clients would share it refuses to start, unless you name the shared one. Each
start warns about a brokers' listener that is not on the loopback.
"""


def document() -> str:
    """The whole of docs/configuration.md."""
    parts = [_HEAD, "## Profiles\n", _profiles()]
    for title, keys in SECTIONS.items():
        parts += [f"## Broker: {title[0].lower()}{title[1:]}\n", _table(keys)]
    parts += ["These keys of Kafka cannot be used:\n", "".join(f"- `{name}`: {why}\n" for name, why in REFUSED.items())]
    parts += ["## Topic\n", _table(TOPIC_KEYS.keys.values(), _synonyms())]
    parts += ["## Producer\n", _table(PRODUCER_KEYS.keys.values())]
    parts += ["## Consumer\n", _table(CONSUMER_KEYS.keys.values())]
    parts += ["## Admin\n", _table(ADMIN_KEYS.keys.values())]
    parts.append("## With confluent-kafka\n")
    parts.append("`--client confluent` takes librdkafka's keys instead, aliases included (`message.timeout.ms`).\n")
    parts += ["### Producer\n", _table(CONFLUENT_PRODUCER.keys.values())]
    own = [key for name, key in CONFLUENT_CONSUMER.keys.items() if name not in CONFLUENT_PRODUCER.keys]
    parts += ["### Consumer, besides the keys it shares with the producer\n", _table(own)]
    return "\n".join(parts)


def _profiles() -> str:
    """What each profile sets."""
    lines = []
    for profile in PROFILES.values():
        lines.append(f"`--profile {profile.name}`: {profile.doc}.\n")
        kinds: dict[str, Mapping[str, str]] = {"broker": profile.broker, "topic": profile.topic}
        kinds |= {f"producer ({client})": values for client, values in profile.producer.items()}
        kinds |= {f"consumer ({client})": values for client, values in profile.consumer.items()}
        for kind, values in kinds.items():
            if values:
                lines.append(f"- {kind}: " + ", ".join(f"`{name}={value}`" for name, value in values.items()))
        lines.append("")
    return "\n".join(lines)


def _synonyms() -> dict[str, str]:
    return {name: ", ".join(f"`{key}`" for key, _factor in keys) for name, keys in BROKER_SYNONYMS.items()}


def _table(keys: Iterable[Key], defaults_from: Mapping[str, str] | None = None) -> str:
    column = "" if defaults_from is None else " Default from the broker's |"
    lines = [
        f"| Key | Type | Default | Allowed |{column} |",
        f"| --- | --- | --- | --- |{' --- |' if column else ''} --- |",
    ]
    for key in keys:
        doc = f"*carried*: {key.doc}" if key.carried else key.doc
        source = "" if defaults_from is None else f" {defaults_from[key.name]} |"
        lines.append(f"| `{key.name}` | {key.kind.value} | {_default(key)} | {_allowed(key)} |{source} {doc} |")
    return "\n".join(lines) + "\n"


def _default(key: Key) -> str:
    if key.default is None:
        return "unset"
    if key.default == LONG_MAX:
        return "no limit"
    text = key.text(key.default)
    return f"`{text}`" if text else "empty"


def _allowed(key: Key) -> str:
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    low = "" if key.minimum is None else f"{key.minimum:.17g}"
    high = "" if key.maximum in (None, INT_MAX) else f"{key.maximum:.17g}"
    if low and high:
        return f"{low} to {high}"
    return f"from {low}" if low else ""


if __name__ == "__main__":
    sys.stdout.write(document())
