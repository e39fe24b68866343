"""The controller's decisions, pure: who leads, which replicas, which producer ids, which requests are refused."""
