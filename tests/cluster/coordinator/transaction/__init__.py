"""Tests of cluster.coordinator.transaction."""
