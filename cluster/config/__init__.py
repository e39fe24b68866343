"""Configuration: Kafka's own keys, typed, with their defaults (docs/configuration.md).

Owns the key tables of brokers, topics, producers and consumers, their validation and the named profiles.
It reads no file, no environment and no clock: callers pass mappings in. A leaf: every room of the cluster may use it.
"""
