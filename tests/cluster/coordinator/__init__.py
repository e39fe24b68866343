"""Tests of cluster.coordinator."""
