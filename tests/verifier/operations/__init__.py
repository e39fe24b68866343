"""Tests of histories of operations: their reader, their checks beside a slow oracle, their verdict."""
