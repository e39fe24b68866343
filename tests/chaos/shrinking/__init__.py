"""Tests of ``chaos.shrinking``."""
