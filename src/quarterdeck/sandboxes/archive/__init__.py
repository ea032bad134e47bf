"""A workspace's files as one compressed file, and back again exactly."""
