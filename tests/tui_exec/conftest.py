"""Cockpits for tests of single commands."""

from tests.tui_shell.conftest import fixed_clock_zone, frozen, installation, live

__all__ = ["fixed_clock_zone", "frozen", "installation", "live"]
