"""The metadata store: the MetadataStore seam, its ZooKeeper form (kazoo) and its in-memory form."""
