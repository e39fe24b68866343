"""Tests of tests/verifier."""
