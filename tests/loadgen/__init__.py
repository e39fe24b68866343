"""Tests of ``loadgen``."""
