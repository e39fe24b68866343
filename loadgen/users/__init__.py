"""users (room in the making)."""
