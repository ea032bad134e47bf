"""The codex agent, driven over its app-server."""
