"""Tests of ``verifier.files``."""
