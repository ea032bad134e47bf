"""The chat of the cockpit."""
