"""Source hosts of repositories and pull requests (docs/interface.md 8)."""
