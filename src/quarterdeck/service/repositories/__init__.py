"""Connected repositories and repository sets."""
