"""The group under test: its members, their processes, what they report, and how their coordinator sees them."""
