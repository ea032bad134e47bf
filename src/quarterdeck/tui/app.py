"""The cockpit's application: it only wires the deck, the screens and the terminal host.

The first frame is drawn before half of the program is loaded: the store, the main screen and the
HTTP library come behind it, and what is typed meanwhile is kept.
"""

import contextlib
import gc
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.driver import Driver
from textual.worker import Worker, WorkerCancelled, WorkerFailed

from quarterdeck.tui import alt_keys
from quarterdeck.tui.actions.current import keymap, use_keys
from quarterdeck.tui.failures import FailureLog
from quarterdeck.tui.frames import DiffedFrames
from quarterdeck.tui.hangup import ending_on_hangup
from quarterdeck.tui.options import Options
from quarterdeck.tui.outlet import outlet_driver
from quarterdeck.tui.outside.aside import say_later
from quarterdeck.tui.removal import EndsWork
from quarterdeck.tui.screens.opening import OpeningScreen
from quarterdeck.tui.text import one_line
from quarterdeck.tui.themes import Looks
from quarterdeck.tui.toasts import SaysOnce
from quarterdeck.tui.type_ahead import TypeAhead

if TYPE_CHECKING:
    from uuid import UUID

    from quarterdeck.client.client import Client
    from quarterdeck.store.deck import Deck
    from quarterdeck.store.lookout import Revive
    from quarterdeck.tui.notices import Messenger, Notice
    from quarterdeck.tui.surroundings import Service, Surroundings
    from quarterdeck.tui.terminal.host import EmulatorHost


SWITCH_SECONDS = 0.0005
"""How long a thread with a key or a frame to pass on waits for the one that runs. Python's own five
milliseconds are a third of the time from a key to its echo in a terminal."""
FAULTS_SECONDS = 30.0
"""Several sentences take a while to read; a click puts them away."""


class Cockpit(TypeAhead, Looks, SaysOnce, EndsWork, DiffedFrames):
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
        options: Options | None = None,
        surroundings: "Surroundings | None" = None,
    ) -> None:
        self.options = options or Options()
        use_keys(self.options.keymap.instead)
        super().__init__()
        self.set_keymap(keymap())
        self.begin_looks(self.options)
        self.surroundings = surroundings
        self._client_factory = client_factory
        self._endpoint = endpoint
        self._drafts = drafts
        self._revive = revive
        self._directory = directory
        self._host: EmulatorHost | None = None
        self._messenger: Messenger | None = None
        self._following: Worker[None] | None = None
        self.failures = FailureLog(drafts)
        self._ending = contextlib.ExitStack()

    @cached_property
    def deck(self) -> "Deck":
        """All state; made when it is first asked for, behind the first frame."""
        from quarterdeck.store.deck import Deck, open_disk

        disk = open_disk(self._drafts, self._endpoint)
        deck = Deck(self._client_factory, endpoint=self._endpoint, disk=disk, revive=self._revive)
        deck.attended = lambda: self._attended
        return deck

    def get_driver_class(self) -> type[Driver]:
        return outlet_driver(super().get_driver_class())

    def get_default_screen(self) -> OpeningScreen:
        return OpeningScreen(self._endpoint)

    def on_mount(self) -> None:
        if not self.is_headless:
            self._ending.enter_context(ending_on_hangup(lambda: self.exit(0)))
        self.hold()
        self.call_after_refresh(self._open)

    def on_app_focus(self) -> None:
        """Somebody comes back from another window, where replicas may have been made."""
        if self._following is not None:
            self.deck.lookout.poke()
            # Textual takes the focus up behind this.
            self.call_later(self.deck.come_back)

    async def _open(self) -> None:
        from quarterdeck.tui.screens.deck import DeckScreen
        from quarterdeck.tui.terminal.host import EmulatorHost, Offers

        self._host = EmulatorHost(offers=Offers(self.options.clipboard))
        await self.push_screen(DeckScreen(self.deck, self._host, self._directory))
        self.release()
        self._tell_faults()
        self.call_after_refresh(self._begin)

    def _tell_faults(self) -> None:
        """Names all that was set and cannot be; what is not named holds."""
        if self.options.faults:
            self.notify(
                "\n".join(one_line(fault) for fault in self.options.faults),
                title="config.toml: these stay as they were",
                severity="warning",
                timeout=FAULTS_SECONDS,
                markup=False,
            )

    def set_option(self, name: str, value: str | bool) -> None:
        """Changes a setting for now; it looks and behaves so at once."""
        self.options = self.options.with_setting(name, value)
        self.show_looks(self.options)
        if self._host is not None:
            self._host.offers = type(self._host.offers)(self.options.clipboard)

    async def move_to(self, service: "Service") -> None:
        """Leaves the service for another one: the deck and all that shows it are made anew."""
        from quarterdeck.tui.screens.deck import DeckScreen

        if self._host is None or self._following is None:
            return
        self.hold()
        self._following.cancel()
        with contextlib.suppress(WorkerCancelled):
            await self._following.wait()
        while len(self.screen_stack) > 1 and not isinstance(self.screen, DeckScreen):
            await self.pop_screen()
        self._client_factory, self._endpoint = service.client, service.endpoint
        self._revive = service.revive
        del self.deck
        await self.switch_screen(DeckScreen(self.deck, self._host, self._directory))
        self.release()
        self._following = self._follow()
        self._watch()

    def action_palette(self) -> None:
        """Finds what can be done now by a few letters."""
        self.hold()
        self._find_command()

    @work(exclusive=True, group="palette")
    async def _find_command(self) -> None:
        from quarterdeck.tui.palette.running import run_palette

        await run_palette(self, self.deck)

    def _watch(self) -> None:
        """Tells what happens to replicas that are not looked at."""
        from quarterdeck.store.changes import Change, ListChanged
        from quarterdeck.tui.notices import Watch

        deck, watch = self.deck, Watch()

        def look(change: Change) -> None:
            if isinstance(change, ListChanged):
                for notice in watch.look(list(deck.replicas.values()), self._looked_at):
                    self._send_notice(notice)

        deck.changed.watch(look)

    @property
    def _attended(self) -> bool:
        """Whether the replicas are before the person's eyes: the window is, and no page is."""
        from quarterdeck.tui.screens.page import PageScreen

        covered = any(isinstance(screen, PageScreen) for screen in self.screen_stack)
        return self.app_focus and not covered

    @property
    def _looked_at(self) -> "UUID | None":
        """The replica that is before the person's eyes."""
        return self.deck.on_screen if self._attended else None

    @work(group="notices")
    async def _send_notice(self, notice: "Notice") -> None:
        if self._messenger is None:
            from quarterdeck.tui.notices import Messenger

            self._messenger = Messenger(self.write_outside)
        await self._messenger.send(notice, self.options.notices)

    def write_outside(self, sequence: str) -> None:
        """Sends a sequence to the terminal that changes nothing on its screen."""
        if say_later(self, sequence):
            return
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)
            self._driver.flush()

    def _begin(self) -> None:
        # What is there after the first frame stays: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        self._following = self._follow()
        self._watch()

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
    options: Options | None = None,
    surroundings: "Surroundings | None" = None,
) -> int:
    """Opens the cockpit and returns the program's exit status.

    `client_factory` is called after the first frame, when the service is there. `endpoint` is shown
    and names the directory under `drafts` where unsent text is kept. `revive` starts the embedded
    service again when it is gone. `directory` is offered as the repository of new replicas. `options` is what
    the person set for the cockpit; `surroundings` what can be asked of the machine.
    """
    alt_keys.install()
    sys.setswitchinterval(SWITCH_SECONDS)
    app = Cockpit(
        client_factory,
        endpoint=endpoint,
        drafts=drafts,
        revive=revive,
        directory=directory,
        options=options,
        surroundings=surroundings,
    )
    result = app.run(mouse=app.options.mouse)
    return result if result is not None else app.return_code or 0
