"""Tests of the members of consumer groups under the load."""
