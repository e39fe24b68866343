"""Shrinking: the smallest schedule, duration and load with which a run still fails, by trying."""
