"""Environments: making and changing them and their parts, and what they put into a workspace."""
