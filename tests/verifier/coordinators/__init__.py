"""Tests of ``verifier.coordinators``."""
