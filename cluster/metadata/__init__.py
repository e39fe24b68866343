"""What the brokers keep in ZooKeeper: the store's seam with its two forms, and Kafka's znodes."""
