"""Benchmarks: side by side in one run, as ratios. Never part of a test."""
