"""The server: what it takes, how it batches, what it answers."""
