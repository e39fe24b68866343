"""checks (room in the making)."""
