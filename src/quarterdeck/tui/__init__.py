"""The cockpit."""
