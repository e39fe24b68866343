"""Tests of ``verifier.closing``."""
