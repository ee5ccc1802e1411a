"""Evidence: what brokers, kernel and host say of a run, gathered past the members and the faults."""
