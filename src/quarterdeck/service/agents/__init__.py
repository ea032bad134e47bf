"""Agents that can be chosen, and the credentials of their providers."""
