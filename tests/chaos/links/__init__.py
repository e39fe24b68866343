"""Tests of chaos.links."""
