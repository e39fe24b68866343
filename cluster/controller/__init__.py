"""controller (room in the making)."""
