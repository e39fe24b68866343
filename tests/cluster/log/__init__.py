"""Tests of ``cluster.log``."""
