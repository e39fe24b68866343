"""Tests of the whole tree: who may import whom, what is loaded, what touches the machine, how large things are."""
