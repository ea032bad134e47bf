"""Checks of pull requests: opened with a run, reported from its workspace, never left open."""
