"""Tests of cluster.broker.handlers."""
