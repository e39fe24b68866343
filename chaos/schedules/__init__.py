"""schedules (room in the making)."""
