"""Tests of tests/chaos."""
