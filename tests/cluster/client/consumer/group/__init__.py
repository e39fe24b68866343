"""Tests of the consumer's side of a group."""
