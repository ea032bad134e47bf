"""Source hosts: where repositories and their pull requests lie (INTERFACE 8)."""
