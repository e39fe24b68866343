"""Topics: made, grown, deleted and made again under the same name, set otherwise while they run."""

from __future__ import annotations

import asyncio

from cluster.metadata.paths import topic_path
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.simulation.nemesis.administration import administer, ask
from tests.simulation.nemesis.base import Nemesis
from tests.simulation.topology import TOPIC, Topology

#: How long a topic may take to be gone: brokers that are dead meanwhile are waited for.
GONE_S = 60.0
TOPIC_RESOURCE, SET = 2, 0


async def _create(nemesis: Nemesis, name: str) -> bool:
    request = request_class(ApiKey.CREATE_TOPICS)
    topic = request.CreatableTopic(name=name, num_partitions=1, replication_factor=3, assignments=[], configs=[])
    message = request(topics=[topic], timeout_ms=1000, validate_only=False)
    done = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return await administer(nemesis, message, 5, done, lambda answer: answer.topics)


async def create_topic(nemesis: Nemesis) -> None:
    nemesis.topics += 1
    name = f"t{nemesis.topics}"
    nemesis.begin("create-topic", name)
    if await _create(nemesis, name):
        nemesis.clients.grow((name, 0))


async def remake_topic(nemesis: Nemesis) -> None:
    """A topic is deleted and made again: nothing of the former one may appear in it."""
    world = nemesis.world
    nemesis.topics += 1
    name = f"t{nemesis.topics}"
    nemesis.begin("remake-topic", name)
    if not await _create(nemesis, name):
        return
    nemesis.clients.grow((name, 0))
    await nemesis.last(0.5, 1.0, 2.0)
    nemesis.clients.close((name, 0))
    message = request_class(ApiKey.DELETE_TOPICS)(topic_names=[name], timeout_ms=1000)
    done = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.REQUEST_TIMED_OUT)
    if not await administer(nemesis, message, 4, done, lambda answer: answer.responses):
        return
    try:
        await world.until(lambda: world.tree.exists(topic_path(name)) is None, GONE_S)
    except TimeoutError:
        world.problems.append(("unavailable", f"{name} was not deleted within {GONE_S:g} s"))
        return
    await asyncio.sleep(nemesis.random.choice((0.0, 0.5)))
    if await _create(nemesis, name):
        nemesis.clients.grow((name, 0))


async def add_partition(nemesis: Nemesis) -> None:
    if "add-partition" in nemesis.world.events.coverage:
        return
    nemesis.world.events.count("add-partition")
    count = nemesis.world.topology.partitions + 1
    request = request_class(ApiKey.CREATE_PARTITIONS)
    topic = request.CreatePartitionsTopic(name=TOPIC, count=count, assignments=None)
    message = request(topics=[topic], timeout_ms=1000, validate_only=False)
    nemesis.begin("add-partition", f"{TOPIC} to {count}")
    done = (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS)
    if await administer(nemesis, message, 2, done, lambda answer: answer.results):
        nemesis.clients.grow((TOPIC, count - 1))


def settings(topology: Topology) -> dict[str, tuple[str, ...]]:
    """What may be set on a topic that runs. One replica that suffices loses nothing either: it is in sync."""
    found = {
        "segment.bytes": ("1000", "3000", "50000"),
        "index.interval.bytes": ("0", "4096"),
        "message.timestamp.type": ("CreateTime", "LogAppendTime"),
        "min.insync.replicas": ("1", "2"),
    }
    if topology.is_retained:
        found |= {"retention.bytes": ("-1", "1000", "5000"), "retention.ms": ("-1", "500", "5000")}
    if topology.is_compacted:
        found |= {"cleanup.policy": ("delete", "compact", "compact,delete"), "min.cleanable.dirty.ratio": ("0", "1")}
    return found if topology.is_synced else {**found, "flush.messages": ("1", "10", "1000000")}


async def configure(nemesis: Nemesis) -> None:
    """One setting of a topic changes while it is written to."""
    choices = settings(nemesis.world.topology)
    name = nemesis.random.choice(sorted(choices))
    value = nemesis.random.choice(choices[name])
    topic, _ = nemesis.random.choice(nemesis.world.partitions)
    request = request_class(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    resource = request.AlterConfigsResource
    entry = resource.AlterableConfig(name=name, config_operation=SET, value=value)
    asked = resource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[entry])
    nemesis.begin("configure", f"{topic} {name}={value}")
    await ask(nemesis, request(resources=[asked], validate_only=False), 1, lambda answer: answer.responses)
