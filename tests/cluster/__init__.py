"""Tests of ``cluster``."""
