"""Training of networks: configuration, data in memory, the loop, what it leaves on disk."""
