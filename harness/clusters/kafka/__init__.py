"""Kafka itself: where its programs come from, how nodes are configured and started, and what they leave in files."""
