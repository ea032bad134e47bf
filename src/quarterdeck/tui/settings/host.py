"""What the settings page asks of the cockpit."""

from typing import Protocol

from quarterdeck.tui.options import Options
from quarterdeck.tui.surroundings import Service, Surroundings


class Host(Protocol):
    """The app that the page is in."""

    options: Options
    surroundings: Surroundings | None

    def set_option(self, name: str, value: str | bool) -> None:
        """Changes a setting for now."""
        ...

    async def move_to(self, service: Service) -> None:
        """Leaves the service for another one."""
        ...
