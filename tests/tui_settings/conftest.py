"""The fixtures of the cockpit's shell, for its settings."""

from tests.tui_shell.conftest import (
    fixed_clock_zone,
    frozen,
    installation,
    live,
)

__all__ = ["fixed_clock_zone", "frozen", "installation", "live"]
