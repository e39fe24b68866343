"""Records whose values begin with a number of eight digits, read back in their order. Owns the reading alone."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition

TIMEOUT_S = 20


def read_numbers(bootstrap: str, topic: str, partition: int = 0) -> list[int]:
    """The numbers of a partition, from its start to its high watermark. Raises ``KafkaException``."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
    numbers: list[int] = []
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
        consumer.assign([TopicPartition(topic, partition, 0)])
        while len(numbers) < end:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"only {len(numbers)} records of {end}"
            if message.error():
                raise KafkaException(message.error())
            numbers.append(int(message.value()[:8]))
    finally:
        consumer.close()
    return numbers
