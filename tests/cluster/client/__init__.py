"""Tests of ``cluster.client``."""
