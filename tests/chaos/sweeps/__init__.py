"""Tests of chaos.sweeps."""
