"""Tests of ``verifier.telling``."""
