"""Tests of cluster.broker.replicas."""
