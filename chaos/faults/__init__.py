"""Faults: one class in one file each. ``chaos.faults.catalogue`` lists them."""
