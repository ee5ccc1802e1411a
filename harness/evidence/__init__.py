"""Evidence: records of a run by brokers, kernel and host, collected independently of members and faults."""
