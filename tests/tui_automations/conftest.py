"""Fixtures of the cockpit's tests, for automations."""

from tests.tui_shell.conftest import fixed_clock_zone, frozen, installation, live

__all__ = ["fixed_clock_zone", "frozen", "installation", "live"]
