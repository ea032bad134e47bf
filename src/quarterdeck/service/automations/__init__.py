"""Automations: agents that run on schedules and events (docs/interface.md 8)."""
