"""Tests of ``verifier.accounts``."""
