"""Tests of tests/loadgen."""
