"""Tests of cluster.broker."""
