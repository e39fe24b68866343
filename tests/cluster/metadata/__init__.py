"""Tests of ``cluster.metadata``."""
