"""Back-ends: each starts a real Kafka cluster, provides its nodes, and leaves nothing behind."""
