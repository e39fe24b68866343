"""replication (room in the making)."""
