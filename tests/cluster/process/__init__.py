"""Tests of the process room."""
