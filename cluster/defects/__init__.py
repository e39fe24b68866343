"""defects (room in the making)."""
