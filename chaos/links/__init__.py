"""links (room in the making)."""
