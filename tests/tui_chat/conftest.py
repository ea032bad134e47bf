"""The cockpits of the shell's tests, and a way into a chat."""

from tests.tui_shell.conftest import (
    fixed_clock_zone,
    frozen,
    installation,
    live,
    live_service,
)

__all__ = ["fixed_clock_zone", "frozen", "installation", "live", "live_service"]
