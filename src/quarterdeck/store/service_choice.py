"""A service that a cockpit can connect to.

Apart from `services` because the full-screen cockpit imports it before its first frame.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.app_state import AppState
    from quarterdeck.store.connection_monitor import Revive


class ServiceChoice(NamedTuple):
    """How to connect to a service.

    `name` tells it from others, `git_variables` are those with which `git-remote-qd` finds it. The client is
    created when the service is available.
    """

    client: "Callable[[], Client]"
    endpoint: str
    revive: "Revive | None"
    name: str = ""
    git_variables: Mapping[str, str] = MappingProxyType({})

    def store(self, drafts: Path, directory: Path | None, *, beside: bool = False) -> "AppState":
        """Return a new state of the service, which does not follow it yet.

        Args:
            drafts: the directory below which unsent text is kept.
            directory: the person's current one.
            beside: whether the service is shown beside the one in use.
        """
        from quarterdeck.store.app_state import AppState
        from quarterdeck.store.disk import open_disk

        store = AppState(
            self.client,
            endpoint=self.endpoint,
            disk=open_disk(drafts, self.endpoint),
            revive=self.revive,
            name=self.name,
            beside=beside,
        )
        store.directory = directory
        store.git_variables = self.git_variables
        return store
