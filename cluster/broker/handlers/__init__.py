"""handlers (room in the making)."""
