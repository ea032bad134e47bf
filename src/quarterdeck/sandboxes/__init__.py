"""Sandboxes: where a workspace's files lie and its processes run. A driver per file behind a port."""
