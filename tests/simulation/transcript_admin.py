"""What an administrator does in a transcript: start brokers, make the topic, change it, elect, move, wait.

Owns these commands and what they say. Each request goes to the first broker that takes itself for the controller.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cluster.controller.leadership import ElectionType
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.simulation.client import Client
from tests.simulation.transcript_clients import TOPIC

if TYPE_CHECKING:
    from tests.simulation.transcript import Transcript

#: ``resource_type`` of a topic, and the operation that sets a value (IncrementalAlterConfigs).
TOPIC_RESOURCE, SET = 2, 0


async def cluster(transcript: Transcript, *words: str) -> str:
    """cluster 2 1 3 key=value ...: start brokers; the first is the controller."""
    transcript.configure(dict(word.split("=") for word in words if "=" in word))
    brokers = [int(word) for word in words if "=" not in word]
    for broker_id in brokers:
        await transcript.start(broker_id)
    nodes = transcript.nodes.values()
    await transcript.until(lambda: all(len(node.metadata.alive_brokers()) == len(brokers) for node in nodes))
    return f"brokers {' '.join(map(str, brokers))}"


async def topic(transcript: Transcript, *words: str) -> None:
    """topic 1 2 3 key=value ...: a topic with one partition on these brokers; the first leads."""
    transcript.replicas = [int(word) for word in words if "=" not in word]
    request = request_class(ApiKey.CREATE_TOPICS).CreatableTopic
    wanted = request(
        name=TOPIC,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[request.CreatableReplicaAssignment(partition_index=0, broker_ids=transcript.replicas)],
        configs=[
            request.CreatableTopicConfig(name=key, value=value)
            for key, value in (word.split("=") for word in words if "=" in word)
        ],
    )
    client = await _controller(transcript)
    response = await client.send(ApiKey.CREATE_TOPICS, 5, topics=[wanted], timeout_ms=5000, validate_only=False)
    assert response.topics[0].error_code == ErrorCode.NONE, response
    await transcript.until(lambda: transcript.leader(TOPIC) == transcript.replicas[0])
    await asyncio.sleep(0.1)


async def config(transcript: Transcript, *words: str) -> None:
    """config key=value ...: change the topic's configuration."""
    resource = request_class(ApiKey.INCREMENTAL_ALTER_CONFIGS).AlterConfigsResource
    wanted = resource(
        resource_type=TOPIC_RESOURCE,
        resource_name=TOPIC,
        configs=[
            resource.AlterableConfig(name=key, config_operation=SET, value=value)
            for key, value in (word.split("=") for word in words)
        ],
    )
    client = await _controller(transcript)
    response = await client.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[wanted], validate_only=False)
    assert response.responses[0].error_code == ErrorCode.NONE, response
    await asyncio.sleep(0.1)


async def elect(transcript: Transcript, kind: str, later: str = "") -> str:
    """elect preferred|unclean [later]: ask for an election (ElectLeaders). Its answer goes by ``elect``."""
    electing = asyncio.get_running_loop().create_task(_elect(transcript, kind))
    transcript.asked["elect"] = electing
    return "" if later else await electing


async def _elect(transcript: Transcript, kind: str) -> str:
    topics = request_class(ApiKey.ELECT_LEADERS).TopicPartitions
    client = await _controller(transcript)
    response = await client.send(
        ApiKey.ELECT_LEADERS,
        2,
        election_type=ElectionType[kind.upper()],
        topic_partitions=[topics(topic=TOPIC, partitions=[0])],
        timeout_ms=2000,
    )
    [found] = response.replica_election_results[0].partition_result
    await asyncio.sleep(0.1)
    return f"elect {kind}: {ErrorCode(found.error_code).name}"


async def reassign(transcript: Transcript, *brokers: str) -> None:
    """reassign 3 4: move the partition to these brokers (AlterPartitionReassignments)."""
    targets = [int(broker) for broker in brokers]
    transcript.replicas = list(dict.fromkeys([*transcript.replicas, *targets]))
    wanted = request_class(ApiKey.ALTER_PARTITION_REASSIGNMENTS).ReassignableTopic
    partition = wanted.ReassignablePartition(partition_index=0, replicas=targets)
    client = await _controller(transcript)
    response = await client.send(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, topics=[wanted(name=TOPIC, partitions=[partition])], timeout_ms=2000
    )
    assert response.responses[0].partitions[0].error_code == ErrorCode.NONE, response


async def _controller(transcript: Transcript) -> Client:
    found = next(broker_id for broker_id, node in transcript.nodes.items() if node.control.is_controller)
    return Client(await transcript.connect(found))


async def wait(transcript: Transcript, seconds: str) -> None:
    """wait 2.5: let time pass."""
    await asyncio.sleep(float(seconds))


COMMANDS = {
    "cluster": cluster,
    "topic": topic,
    "config": config,
    "elect": elect,
    "reassign": reassign,
    "wait": wait,
}
