"""A frozen cockpit for pictures."""

from tests.tui_shell.conftest import fixed_clock_zone

__all__ = ["fixed_clock_zone"]
