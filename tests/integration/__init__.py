"""Tests of tests/integration."""
