"""The clients and workloads of members on a real cluster."""
