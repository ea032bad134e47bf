"""The cockpit's application: it only wires the deck, the screens and the terminal host.

The first frame is drawn before half of the program is loaded: the store, the main screen and the
HTTP library come behind it, and what is typed meanwhile is kept.
"""

import contextlib
import gc
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.worker import WorkerFailed

from quarterdeck.tui import alt_keys
from quarterdeck.tui.failures import FailureLog
from quarterdeck.tui.frames import DiffedFrames
from quarterdeck.tui.hangup import ending_on_hangup
from quarterdeck.tui.screens.opening import OpeningScreen
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import TypeAhead

if TYPE_CHECKING:
    from quarterdeck.client.client import Client
    from quarterdeck.store.deck import Deck
    from quarterdeck.store.lookout import Revive
    from quarterdeck.tui.terminal.host import EmulatorHost


class Cockpit(TypeAhead, DiffedFrames):
    """One full screen over one `Deck`. Closing it stops nothing."""

    TITLE = "quarterdeck"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        client_factory: "Callable[[], Client]",
        *,
        endpoint: str,
        drafts: Path,
        revive: "Revive | None",
        directory: Path | None,
    ) -> None:
        super().__init__()
        self._client_factory = client_factory
        self._endpoint = endpoint
        self._drafts = drafts
        self._revive = revive
        self._directory = directory
        self._host: EmulatorHost | None = None
        self.failures = FailureLog(drafts)
        self._ending = contextlib.ExitStack()

    @cached_property
    def deck(self) -> "Deck":
        """All state; made when it is first asked for, behind the first frame."""
        from quarterdeck.store.deck import Deck, open_disk

        disk = open_disk(self._drafts, self._endpoint)
        return Deck(self._client_factory, endpoint=self._endpoint, disk=disk, revive=self._revive)

    def get_default_screen(self) -> OpeningScreen:
        return OpeningScreen(self._endpoint)

    def on_mount(self) -> None:
        if not self.is_headless:
            self._ending.enter_context(ending_on_hangup(lambda: self.exit(0)))
        self.hold()
        self.call_after_refresh(self._open)

    async def _open(self) -> None:
        from quarterdeck.tui.screens.deck import DeckScreen
        from quarterdeck.tui.terminal.host import EmulatorHost

        self._host = EmulatorHost()
        await self.push_screen(DeckScreen(self.deck, self._host, self._directory))
        self.release()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        # What is there after the first frame stays: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        self._follow()

    @work(exit_on_error=False)
    async def _follow(self) -> None:
        try:
            await self.deck.run()
        except Exception as error:
            # Without the deck nothing on the screen is true any more.
            self._end_with(error)
            raise

    def _handle_exception(self, error: Exception) -> None:
        """Every failure that nothing else has taken ends here.

        A worker that failed is told and the cockpit goes on; a widget that cannot handle its
        messages any more ends the cockpit.
        """
        if isinstance(error, WorkerFailed):
            self.notify(
                one_line(self.failures.sentence(error.error)),
                title="Something in the cockpit failed",
                severity="error",
                markup=False,
            )
        else:
            self._end_with(error)

    def _end_with(self, error: BaseException) -> None:
        self._return_code = 1
        if self._exception is None and isinstance(error, Exception):
            # Test runs raise it again.
            self._exception = error
            self._exception_event.set()
        sentence = self.failures.sentence(error)
        self.panic(
            Text(
                f"The cockpit failed: {sentence}\nNothing else has stopped: open it again with qd."
            )
        )

    async def on_unmount(self) -> None:
        self._ending.close()
        if self._host is not None:
            await self._host.close()


def run(
    client_factory: "Callable[[], Client]",
    *,
    endpoint: str,
    drafts: Path,
    revive: "Revive | None" = None,
    directory: Path | None = None,
) -> int:
    """Opens the cockpit and returns the program's exit status.

    `client_factory` is called after the first frame, when the service is there. `endpoint` is shown
    and names the directory under `drafts` where unsent text is kept. `revive` starts the embedded
    service again when it is gone. `directory` is offered as the repository of new replicas.
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
