"""The messages between brokers that kafka-python lacks: its generator, fed with schemas of our own.

Owns the classes; the layouts are the JSON files of ``cluster.protocol.schemas``. They are reached through
``cluster.protocol.message_classes`` like all others. Attributes are the snake_case of Kafka's names: ``controller_id``,
``is_k_raft_controller``, ``topic_states``, ``partition_states``, ``partition_index``, ``leader_epoch``,
``new_isr_with_epochs``. Nested structs are attributes of the class, named like their type in the schema:
``LeaderAndIsrRequest.LeaderAndIsrTopicState(topic_name=..., ...)``. A uuid is a ``uuid.UUID``, None when zero.
"""

from __future__ import annotations

from cluster.protocol import schemas
from cluster.protocol.kafka_schemas import define_message

#: Version 7, controller to broker: lead or follow these partitions. ``type`` is 1 incremental, 2 full.
LeaderAndIsrRequest = define_message("LeaderAndIsrRequest", schemas)
LeaderAndIsrResponse = define_message("LeaderAndIsrResponse", schemas)

#: Version 4, controller to broker: stop these replicas, and delete those with ``delete_partition``.
StopReplicaRequest = define_message("StopReplicaRequest", schemas)
StopReplicaResponse = define_message("StopReplicaResponse", schemas)

#: Version 8, controller to broker: what every broker answers to Metadata.
UpdateMetadataRequest = define_message("UpdateMetadataRequest", schemas)
UpdateMetadataResponse = define_message("UpdateMetadataResponse", schemas)

#: Version 3, broker to controller: move leadership away from me. The answer names what the broker still leads.
ControlledShutdownRequest = define_message("ControlledShutdownRequest", schemas)
ControlledShutdownResponse = define_message("ControlledShutdownResponse", schemas)

#: Version 3, leader to controller: new ISRs. Topics go by ``topic_id``.
AlterPartitionRequest = define_message("AlterPartitionRequest", schemas)
AlterPartitionResponse = define_message("AlterPartitionResponse", schemas)

#: Version 0, broker to controller: one more block of producer ids.
AllocateProducerIdsRequest = define_message("AllocateProducerIdsRequest", schemas)
AllocateProducerIdsResponse = define_message("AllocateProducerIdsResponse", schemas)
