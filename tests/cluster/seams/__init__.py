"""Tests of ``cluster.seams``."""
