"""Tests of tests/conformance."""
