"""faults (room in the making)."""
