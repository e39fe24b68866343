"""Real processes, sockets, ZooKeeper and Spark: what no room shows alone."""
