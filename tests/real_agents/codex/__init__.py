"""Codex itself, as it comes from npm."""
