"""Small parts of the cockpit's screens."""
