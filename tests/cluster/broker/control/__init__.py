"""Tests of ``cluster.broker.control``."""
