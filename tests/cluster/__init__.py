"""Tests of tests/cluster."""
