"""chaos (room in the making)."""
