"""cluster (room in the making)."""
