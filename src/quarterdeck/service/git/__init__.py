"""Git operations of a person on workspaces."""
