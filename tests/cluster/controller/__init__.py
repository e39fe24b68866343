"""Tests of ``cluster.controller``."""
