"""Coding agents, driven over their machine protocols: one driver per protocol, presets as data."""
