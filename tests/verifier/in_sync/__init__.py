"""Tests of ``verifier.in_sync``."""
