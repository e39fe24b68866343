"""Tests of verifier/evidence."""
