"""Automations: schedules, events, runs, checks."""
