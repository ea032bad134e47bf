"""Packs a workspace's files into one compressed file, and restores them exactly."""
