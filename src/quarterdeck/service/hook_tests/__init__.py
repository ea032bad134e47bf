"""Testing hooks in workspaces that are made for it, and that no list shows."""
