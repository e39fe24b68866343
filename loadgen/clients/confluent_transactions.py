"""confluent-kafka as a transactional producer. Owns the reaction to its errors; ``confluent`` owns the rest.

librdkafka does not say whether a failed commit was ever requested, so its outcome is never certain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms
from loadgen.clients.confluent import ConfluentProducer, describe_exception
from loadgen.clients.librdkafka import producer_config
from loadgen.clients.transaction_keys import CALL_MS, defaults
from loadgen.clients.transactional import USURPERS, Remedy, TransactionalFactory, TransactionRefusal
from loadgen.settings import CONFLUENT, ConfigValue


def transactional_factory(
    bootstrap: str, transactional_id: str, given: Mapping[str, ConfigValue], clock: Clock
) -> TransactionalFactory:
    """Makes the instances of one transactional producer. The factory raises ``KafkaException`` for a bad key."""
    own = {"transactional.id": transactional_id}
    config = producer_config(bootstrap, transactional_id, {**defaults(CONFLUENT), **given, **own})
    return lambda callbacks: ConfluentTransactionalProducer(config, callbacks, clock)


class ConfluentTransactionalProducer(ConfluentProducer):
    """``TransactionalClient`` on confluent-kafka's. Its calls need a thread, and call back from there."""

    def initialize(self) -> None:
        called(self._producer.init_transactions)

    def begin(self) -> None:
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise refusal_of(error) from error

    def occupy(self, topic: str) -> None:
        # only a consumer can name a group; it sends no request, so its address does not matter
        consumer = Consumer({"bootstrap.servers": "127.0.0.1:9", "group.id": USURPERS})
        try:
            whose = consumer.consumer_group_metadata()
            given = [TopicPartition(topic, 0, 0)]
            called(lambda timeout_s: self._producer.send_offsets_to_transaction(given, whose, timeout_s))
        finally:
            consumer.close()

    def commit(self) -> None:
        called(self._producer.commit_transaction)

    def abort(self) -> None:
        called(self._producer.abort_transaction)


def called(call: Callable[[float], None]) -> None:
    """Call the client, with a timeout. Raises ``TransactionRefusal``."""
    try:
        call(seconds_of_ms(CALL_MS))
    except KafkaException as error:
        raise refusal_of(error) from error


def refusal_of(error: KafkaException) -> TransactionRefusal:
    """The refusal that an error of the client means."""
    told: KafkaError = error.args[0]
    text = describe_exception(error)
    if told.txn_requires_abort():
        return TransactionRefusal(text, Remedy.ABORT, is_certain=False)
    remedy = Remedy.REPEAT if told.retriable() and not told.fatal() else Remedy.REPLACE
    return TransactionRefusal(text, remedy, is_certain=False)
