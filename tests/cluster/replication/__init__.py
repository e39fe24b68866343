"""Tests of cluster.replication."""
