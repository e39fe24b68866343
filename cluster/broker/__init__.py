"""broker (room in the making)."""
