"""Tests of ``verifier.transactions``: bytes, alignments, and whole small worlds beside the oracle; no Spark."""
