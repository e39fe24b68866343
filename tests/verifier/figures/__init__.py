"""Tests of ``verifier.figures``."""
