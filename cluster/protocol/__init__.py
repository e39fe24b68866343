"""protocol (room in the making)."""
