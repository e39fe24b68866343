"""commands (room in the making)."""
