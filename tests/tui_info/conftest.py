"""Frozen cockpits."""

from tests.tui_shell.conftest import fixed_clock_zone, frozen

__all__ = ["fixed_clock_zone", "frozen"]
