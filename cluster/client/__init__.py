"""client (room in the making)."""
