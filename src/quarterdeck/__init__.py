"""quarterdeck: one terminal cockpit for many coding agents, and the service behind it."""

__version__ = "0.1.0"
