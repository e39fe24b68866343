"""log (room in the making)."""
