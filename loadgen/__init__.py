"""loadgen (room in the making)."""
