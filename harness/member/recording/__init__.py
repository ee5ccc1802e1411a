"""What a member writes into the history: events, and one row for each record."""
