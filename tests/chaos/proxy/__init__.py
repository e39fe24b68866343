"""Tests of chaos.proxy."""
