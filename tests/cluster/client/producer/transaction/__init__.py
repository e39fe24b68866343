"""Tests of ``cluster.client.producer.transaction``."""
