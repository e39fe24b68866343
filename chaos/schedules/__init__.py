"""Schedules: what is broken when, as data. Written by a seeded generator or by hand, stored, replayed."""
