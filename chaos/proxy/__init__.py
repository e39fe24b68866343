"""proxy (room in the making)."""
