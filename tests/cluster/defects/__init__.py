"""Tests of cluster.defects."""
