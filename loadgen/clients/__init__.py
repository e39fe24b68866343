"""Clients under the load: what the load asks of a Kafka client, and the clients that give it.

Owns the adapters (confluent-kafka for the load, kafka-python beside it for the final phase) and librdkafka's
configuration. Does not own what is sent, nor what is recorded.
"""
