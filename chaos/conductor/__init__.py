"""conductor (room in the making)."""
