"""Tests of ``cluster.protocol``."""

# Before any test imports kafka-python directly: its first import warns on Python 3.11, and warnings are errors.
import cluster.protocol.kafka_schemas  # noqa: F401
