"""The cockpit's application: it only wires the deck, the screens and the terminal host.

The first frame is drawn before the HTTP library is loaded: the client is made after it.
"""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work

from quarterdeck.store.deck import Deck, Revive, open_disk
from quarterdeck.tui import alt_keys
from quarterdeck.tui.frames import DiffedFrames
from quarterdeck.tui.screens.deck import DeckScreen
from quarterdeck.tui.terminal.host import EmulatorHost

if TYPE_CHECKING:
    from quarterdeck.client.client import Client


class Cockpit(DiffedFrames):
    """One full screen over one `Deck`. Closing it stops nothing."""

    TITLE = "quarterdeck"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        client_factory: "Callable[[], Client]",
        *,
        endpoint: str,
        drafts: Path,
        revive: Revive | None,
        directory: Path | None,
    ) -> None:
        super().__init__()
        disk = open_disk(drafts, endpoint)
        self._deck = Deck(client_factory, endpoint=endpoint, disk=disk, revive=revive)
        self._directory = directory
        self._host = EmulatorHost()

    def get_default_screen(self) -> DeckScreen:
        return DeckScreen(self._deck, self._host, self._directory)

    def on_mount(self) -> None:
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        # What is there after the first frame stays: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        self._follow()

    @work
    async def _follow(self) -> None:
        await self._deck.run()

    async def on_unmount(self) -> None:
        await self._host.close()


def run(
    client_factory: "Callable[[], Client]",
    *,
    endpoint: str,
    drafts: Path,
    revive: Revive | None = None,
    directory: Path | None = None,
) -> int:
    """Opens the cockpit and returns the program's exit status.

    `client_factory` is called after the first frame, when the service is there. `endpoint` is shown and names the directory
    under `drafts` where unsent text is kept. `revive` starts the embedded service again when it
    is gone. `directory` is offered as the repository of new replicas.
    """
    alt_keys.install()
    app = Cockpit(
        client_factory,
        endpoint=endpoint,
        drafts=drafts,
        revive=revive,
        directory=directory,
    )
    result = app.run()
    return result if result is not None else app.return_code or 0
