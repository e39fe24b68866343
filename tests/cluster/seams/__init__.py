"""Tests of tests/cluster/seams."""
