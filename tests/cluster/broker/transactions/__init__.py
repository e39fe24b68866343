"""Tests of the transaction coordinator's shell."""
