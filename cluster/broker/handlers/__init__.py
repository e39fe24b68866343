"""One module per API: from a decoded request to its answer. What they need of the broker is ``Services``.

Owns the answers of Kafka's KafkaApis. Does not own any state; decisions that need some belong to other rooms.
"""
