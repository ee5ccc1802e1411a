"""How a member processes the records of a poll: one after the other, in a pool, with a store."""
