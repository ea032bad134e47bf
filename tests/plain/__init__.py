"""The cockpit as lines of text."""
