"""replicas (room in the making)."""
