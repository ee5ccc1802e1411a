"""Back-ends: what starts a real Kafka cluster, hands out its nodes, and leaves nothing behind."""
