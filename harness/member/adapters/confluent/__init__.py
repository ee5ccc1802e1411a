"""The adapter for confluent-kafka: consumer, producer, delayed revocation, and what they share."""
