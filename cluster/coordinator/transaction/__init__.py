"""The transaction coordinator, pure: decisions alone. Its shell is ``cluster.broker.transactions``."""
