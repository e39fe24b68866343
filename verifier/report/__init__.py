"""report (room in the making)."""
