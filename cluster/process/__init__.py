"""process (room in the making)."""
