"""Tests of cluster.broker: mostly real brokers over memory seams (``tests.simulation``), in virtual time."""
