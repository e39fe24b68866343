"""Tests of the checks of consumer groups."""
