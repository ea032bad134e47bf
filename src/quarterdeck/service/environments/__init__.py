"""Environments: creating and changing them and their parts, and the setup of a workspace."""
