"""Tests of tests/cluster/client."""
