"""Warm pools: workspaces prepared ahead of time, and handed out."""
