"""Tests of tests/simulation."""
