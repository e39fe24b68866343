"""Tests of ``verifier.spark``."""
