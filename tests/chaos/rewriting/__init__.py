"""Tests of the rewriting of addresses."""
