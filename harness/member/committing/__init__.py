"""When a member commits, and which offsets."""
