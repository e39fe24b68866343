"""Tests of runs on a cluster that others started."""
