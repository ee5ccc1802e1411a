"""What brokers recorded: requests, committed offsets, leaders, their settings and clocks."""
