"""Schemas of the broker-to-broker messages in the format of Apache Kafka's own (one JSON file per message).

Owns the layouts of Kafka's message schemas, in the one version of each that our brokers speak. Read by
``cluster.protocol.interbroker``.
"""
