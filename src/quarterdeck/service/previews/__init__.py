"""Ports of workspaces that can be opened through the service (docs/interface.md 6)."""
