"""evidence (room in the making)."""
