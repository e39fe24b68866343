"""config (room in the making)."""
