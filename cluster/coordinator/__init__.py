"""coordinator (room in the making)."""
