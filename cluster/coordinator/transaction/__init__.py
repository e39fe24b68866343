"""The transaction coordinator, pure: decisions alone. No broker uses it yet (``cluster.coordinator.location``)."""
