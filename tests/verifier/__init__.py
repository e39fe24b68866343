"""Tests of ``verifier``."""
