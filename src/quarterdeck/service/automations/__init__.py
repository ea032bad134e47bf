"""Automations: agents that run on schedules and events (INTERFACE 8)."""
