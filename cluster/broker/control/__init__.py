"""control (room in the making)."""
