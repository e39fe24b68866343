"""The transactional producer of a confluent member. Owns only how offsets are added to a transaction."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import TopicPartition

from cluster.seams.clock import Clock
from loadgen.clients.confluent_transactions import ConfluentTransactionalProducer, called
from loadgen.clients.librdkafka import producer_config
from loadgen.clients.transaction_keys import defaults
from loadgen.members.confluent import ConfluentMember
from loadgen.members.output import UNHEARD
from loadgen.settings import CONFLUENT


class ConfluentOutput(ConfluentTransactionalProducer):
    """``OutputProducer`` on confluent-kafka."""

    def add_offsets(self, topic: str, offsets: Mapping[int, int], member: ConfluentMember) -> None:
        whose = member.consumer.consumer_group_metadata()
        given = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        called(lambda timeout_s: self._producer.send_offsets_to_transaction(given, whose, timeout_s))


def confluent_output(bootstrap: str, transactional_id: str, clock: Clock) -> ConfluentOutput:
    """A producer with this ``transactional.id``."""
    own = {"transactional.id": transactional_id}
    config = producer_config(bootstrap, transactional_id, {**defaults(CONFLUENT), **own})
    return ConfluentOutput(config, UNHEARD, clock)
