"""Schedules: which faults are injected when, as data. A seeded generator or a user writes them; runs replay them."""
