"""Tests of ``verifier.witness``."""
