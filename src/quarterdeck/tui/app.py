"""The cockpit's application: it wires the app state, the screens and the terminal host.

The first frame is drawn before half of the program is loaded: the store, the main screen and the
HTTP library are loaded after it, and keys typed meanwhile are kept.
"""

import contextlib
import gc
import sys
import traceback
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.driver import Driver
from textual.events import DescendantFocus
from textual.notifications import Notify
from textual.worker import Worker, WorkerCancelled, WorkerFailed

from quarterdeck.loading import load_pydantic_core
from quarterdeck.local.files import make_private_directory
from quarterdeck.store.service_choice import ServiceChoice
from quarterdeck.transcript.text import one_line
from quarterdeck.tui import themes
from quarterdeck.tui.actions.model import keymap, use_keys
from quarterdeck.tui.frames import DiffedFrames
from quarterdeck.tui.host_terminal import TerminalAnswered, TerminalIdentity, ending_on_hangup
from quarterdeck.tui.options import Options
from quarterdeck.tui.outside import say_later
from quarterdeck.tui.textual_ext import toasts
from quarterdeck.tui.textual_ext.driver import ask_identity, install_alt_keys, outlet_driver
from quarterdeck.tui.textual_ext.type_ahead import KeyHold, TypeAhead
from quarterdeck.tui.textual_ext.worker_cleanup import WorkerCleanup
from quarterdeck.tui.widgets.status_line import OpeningScreen

if TYPE_CHECKING:
    from uuid import UUID

    from quarterdeck.store.app_state import AppState
    from quarterdeck.store.notices import AttentionNotice
    from quarterdeck.store.services import Services
    from quarterdeck.tui.known_services import Surroundings
    from quarterdeck.tui.notices import Messenger
    from quarterdeck.tui.screens.main import MainScreen
    from quarterdeck.tui.terminal.host import EmulatorHost


SWITCH_SECONDS = 0.0005
"""How long a thread with a key or a frame to process waits for the running one. Python's default of five
milliseconds are a third of the time from a key to its echo in a terminal."""
FILL_SECONDS = 0.5
"""Maximum delay of the main screen's first frame while its content loads: frames without it cost as much."""
FAULTS_SECONDS = 30.0
"""Several sentences take a while to read; a click closes them."""
STARTED_SECONDS = 3.0
"""By then all is loaded that a start loads."""
FAILURE_LOG = "cockpit.log"
LARGEST_LOG = 1_000_000
"""Bytes; a larger file is renamed and a new one is started."""


class Cockpit(TypeAhead, WorkerCleanup, DiffedFrames):
    """One full screen over the stores of one or more services. Closing it stops nothing."""

    TITLE = "quarterdeck"
    CSS = toasts.STYLES + themes.STYLES
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        service: ServiceChoice,
        *,
        drafts: Path,
        directory: Path | None,
        options: Options | None = None,
        surroundings: "Surroundings | None" = None,
    ) -> None:
        self.options = options or Options()
        use_keys(self.options.keymap.instead)
        super().__init__()
        self.set_keymap(keymap())
        self.appearance = themes.Appearance(self)
        self.appearance.begin(self.options)
        self.surroundings = surroundings
        self._service = service
        self._drafts = drafts
        self._directory = directory
        self.identity = TerminalIdentity()
        self._following: dict[AppState, Worker[None]] = {}
        """The worker of each service's store."""
        self._copied = ""
        """What was selected and copied last."""
        self.failures = FailureLog(drafts)
        self._ending, self._filling = contextlib.ExitStack(), contextlib.ExitStack()

    @cached_property
    def app_state(self) -> "AppState":
        """The state of the service in use; created on first access, after the first frame."""
        return self._store_of(self._service)

    @cached_property
    def services(self) -> "Services":
        """All services that are shown; created on first access, after the first frame."""
        from quarterdeck.store.services import Services

        services = Services(self.app_state)
        if self.surroundings is not None:
            for service in self.surroundings.beside():
                services.add(self._store_of(service, beside=True))
        return services

    @cached_property
    def terminal_host(self) -> "EmulatorHost":
        """What draws terminals; created on first access, when a terminal is first shown."""
        from quarterdeck.tui.terminal.host import EmulatorHost, Offers

        return EmulatorHost(offers=Offers(self.options.clipboard))

    @property
    def _has_host(self) -> bool:
        return "terminal_host" in vars(self)

    def _main_screen(self) -> "MainScreen":
        load_pydantic_core()
        from quarterdeck.tui.screens.main import MainScreen

        return MainScreen(self.services, lambda: self.terminal_host, self._directory)

    def _store_of(self, service: "ServiceChoice", *, beside: bool = False) -> "AppState":
        store = service.store(self._drafts, self._directory, beside=beside)
        store.attended = lambda: self._attended
        return store

    def get_driver_class(self) -> type[Driver]:
        return outlet_driver(super().get_driver_class())

    def get_default_screen(self) -> OpeningScreen:
        return OpeningScreen(self._service.endpoint)

    def on_mount(self) -> None:
        if not self.is_headless:
            self._ending.enter_context(ending_on_hangup(lambda: self.exit(0)))
            ask_identity(self, self.identity.expect())
        self.call_after_refresh(self._open, self.hold_keys("Starting"))

    def on_terminal_answered(self, answer: TerminalAnswered) -> None:
        """Note what the terminal is."""
        self.identity.take(answer)

    def on_app_focus(self) -> None:
        """Check for new replicas and changed themes when the user comes back from another window."""
        if self._following:
            self.reload_themes()
            self.services.poke()
            # Textual restores the focus after this.
            self.call_later(self._dwell)

    def _dwell(self) -> None:
        from quarterdeck.tui.screens.main import MainScreen

        if isinstance(self.screen, MainScreen):
            self.screen.dwell()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        if getattr(event.widget, "cursor_blink", False):
            # Nothing blinks: a cursor that does costs bytes without end.
            event.widget.cursor_blink = False  # pyright: ignore[reportAttributeAccessIssue]
        if len(self._notifications):
            self.call_after_refresh(toasts.place_notices, self)

    def on_text_selected(self) -> None:
        """Copy what was selected with the mouse, as terminals do; a click that selects nothing comes here too."""
        copied, self._copied = self._copied, self.screen.get_selected_text() or ""
        if self._copied and self._copied != copied:
            from quarterdeck.tui.clipboard import copy_text

            copy_text(self.screen, self._copied)

    def on_notify(self, event: Notify) -> None:
        """Part of `App`, which then shows the notice."""
        toasts.remove_repeated(self, event.notification)
        toasts.place_notices(self)

    async def _open(self, hold: KeyHold) -> None:
        if not self.is_headless:
            self._filling.enter_context(self.batch_update())
        with hold:
            await self.push_screen(self._main_screen())
        self._filling.callback(self.set_timer(FILL_SECONDS, self.on_main_screen_filled).stop)
        self._tell_faults()
        self.call_after_refresh(self._start_up)

    def on_main_screen_filled(self) -> None:
        """Draw the main screen, also when its content is not loaded in time."""
        self._filling.close()
        for screen in self.screen_stack[-1:]:  # none while the cockpit closes
            screen.refresh()

    def _tell_faults(self) -> None:
        """Show all invalid settings; the others apply."""
        if self.options.faults:
            self.notify(
                "\n".join(one_line(fault) for fault in self.options.faults),
                title="config.toml: ignored",
                severity="warning",
                timeout=FAULTS_SECONDS,
                markup=False,
            )

    def set_option(self, name: str, value: str | bool) -> None:
        """Change a setting for this session, with immediate effect."""
        from quarterdeck.tui.transcript_view import TranscriptView
        from quarterdeck.tui.widgets.composer import Composer

        self.options = self.options.with_setting(name, value)
        self.appearance.show(self.options)
        for screen in self.screen_stack:
            for view in screen.query(TranscriptView):
                view.show_calls(self.options.calls)
            for composer in screen.query(Composer):
                composer.use_vim(self.options.editing == "vim")
        if self._has_host:
            self.terminal_host.offers = type(self.terminal_host.offers)(self.options.clipboard)

    def reload_themes(self) -> None:
        """Read the user's own themes again if a file has changed."""
        if self.surroundings is None:
            return
        from quarterdeck.tui.options import THEME_DIRECTORY
        from quarterdeck.tui.theme_files import read_themes, stamp_of

        directory = self.surroundings.file.parent / THEME_DIRECTORY
        known = self.options.own_themes
        if stamp_of(directory) == (known.stamp if known is not None else ()):
            return
        own = read_themes(directory)
        self.options = self.options._replace(own_themes=own)
        self.appearance.reload(self.options)
        for fault in own.faults:
            self.notify(one_line(fault), title="Theme", severity="warning", markup=False)

    async def move_to(self, service: "ServiceChoice") -> None:
        """Use another service: all stores and screens are created again."""
        from quarterdeck.tui.screens.main import MainScreen

        if not self._following:
            return
        with self.hold_keys(f"Connecting to {service.endpoint}"):
            for worker in self._following.values():
                worker.cancel()
            for worker in self._following.values():
                with contextlib.suppress(WorkerCancelled, WorkerFailed):
                    await worker.wait()
            self._following.clear()
            while len(self.screen_stack) > 1 and not isinstance(self.screen, MainScreen):
                await self.pop_screen()
            self._service = service
            del self.app_state, self.services
            await self.switch_screen(self._main_screen())
        self._follow_all()
        self._watch()

    def show_beside(self, service: ServiceChoice) -> None:
        """Show another service beside the one in use, from now on."""
        store = self._store_of(service, beside=True)
        self.services.add(store)
        self._following[store] = self._follow_beside(store)

    def hide(self, name: str) -> None:
        """Show a service beside the one in use no longer."""
        for store in self.services.stores[1:]:
            if store.connection.name == name:
                self._following.pop(store).cancel()
                self.services.remove(store)

    def action_help_quit(self) -> None:
        """Part of `App`: what ctrl+c does where nothing else takes it."""
        from quarterdeck.tui.actions import keyed
        from quarterdeck.tui.widgets.composer import QUITTING

        self.notify(keyed(QUITTING), markup=False)

    def action_palette(self) -> None:
        """Search the available actions by a few letters."""
        self._find_command()

    @work(exclusive=True, group="palette")
    async def _find_command(self) -> None:
        from quarterdeck.tui.palette import run_palette

        await run_palette(self, self.services)

    @work(exclusive=True, group="palette")
    async def action_search(self) -> None:
        """Search in the chats of all replicas."""
        from quarterdeck.tui.search import run_search

        await run_search(self, self.services)

    def _watch(self) -> None:
        """Show a notification about replicas that are not on the screen."""
        from quarterdeck.store.notices import NoticeWatch
        from quarterdeck.store.signals import Change, ListChanged

        services, watch = self.services, NoticeWatch()

        def look(change: Change) -> None:
            if isinstance(change, ListChanged):
                for notice in watch.look(list(services.all()), self._looked_at):
                    self._send_notice(notice)

        services.changed.watch(look)

    @property
    def _attended(self) -> bool:
        """Whether the replicas are visible: the window has the focus, and no page covers them."""
        from quarterdeck.tui.screens.page import PageScreen

        covered = any(isinstance(screen, PageScreen) for screen in self.screen_stack)
        return self.app_focus and not covered

    @property
    def _looked_at(self) -> "UUID | None":
        """The replica that the user sees."""
        return self.services.on_screen if self._attended else None

    @work(group="notices")
    async def _send_notice(self, notice: "AttentionNotice") -> None:
        await self.messenger.send(notice, self.options)

    @cached_property
    def messenger(self) -> "Messenger":
        """Sends notices to the terminal."""
        from quarterdeck.tui.notices import Messenger

        return Messenger(self.write_outside, self.identity)

    def write_outside(self, sequence: str) -> None:
        """Send a sequence to the terminal that changes nothing on its screen."""
        if say_later(self, sequence):
            return
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)
            self._driver.flush()

    def _start_up(self) -> None:
        if not self.is_headless:
            self.set_timer(STARTED_SECONDS, _collect_from_now)
        self._follow_all()
        self._watch()

    def _follow_all(self) -> None:
        """Follow every service in a worker of its own, so that none waits for another."""
        current, *others = self.services.stores
        self._following = {
            current: self._follow(),
            **{one: self._follow_beside(one) for one in others},
        }

    @work(exit_on_error=False)
    async def _follow(self) -> None:
        try:
            await self.app_state.run()
        except Exception as error:
            # Without the app state nothing on the screen is up to date.
            self._end_with(error)
            raise

    @work
    async def _follow_beside(self, store: "AppState") -> None:
        try:
            await store.run()
        except Exception as error:
            # The other services go on; the failure of a worker is reported.
            store.lookout.failed(
                f"The cockpit cannot follow it: {str(root_of(error)).rstrip('.')}."
            )
            raise

    def _handle_exception(self, error: Exception) -> None:
        """Handle an error that nothing else has handled.

        The failure of a worker is reported and the cockpit continues; a widget that cannot handle its
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
        if self._has_host:
            await self.terminal_host.close()


def _collect_from_now() -> None:
    """Turn the garbage collector on, which `open_cockpit` turns off: a seventh of a start was its work.

    What exists after the start lives as long as the process, so it need not be scanned again. Without a
    terminal the process may open further cockpits.
    """
    gc.freeze()
    gc.enable()


class FailureLog:
    """Appends failures to a file in the client's directory, readable by its owner only."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FAILURE_LOG

    def write(self, error: BaseException) -> bool:
        """Log an error with its traceback; return False when the disk does not accept it."""
        trace = "".join(traceback.format_exception(error))
        try:
            make_private_directory(self.path.parent)
            if self.path.exists() and self.path.stat().st_size > LARGEST_LOG:
                self.path.replace(self.path.with_suffix(".old.log"))
            self.path.touch(mode=0o600)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')}\n{trace}\n")
        except OSError:
            return False
        return True

    def sentence(self, error: BaseException) -> str:
        """Log an error, and return what the user should know about it."""
        cause = root_of(error)
        summary = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
        where = f" The trace is in {self.path}." if self.write(error) else ""
        return f"{summary}.{where}"


def root_of(error: BaseException) -> BaseException:
    """Return the first error inside groups and wrappers."""
    while True:
        match error:
            case BaseExceptionGroup(exceptions=(first, *_)):
                error = first
            case BaseException(__cause__=BaseException() as cause):
                error = cause
            case _:
                return error


def run(
    service: ServiceChoice,
    *,
    drafts: Path,
    directory: Path | None = None,
    options: Options | None = None,
    surroundings: "Surroundings | None" = None,
) -> int:
    """Open the cockpit and return the program's exit status.

    `service` is the one in use; its client is created after the first frame, when the service is
    available. Its endpoint names the directory under `drafts` where unsent text is kept. `directory`
    is offered as the repository of new replicas. `options` are the user's settings for the cockpit;
    `surroundings` give access to the machine.
    """
    install_alt_keys()
    sys.setswitchinterval(SWITCH_SECONDS)
    app = Cockpit(
        service,
        drafts=drafts,
        directory=directory,
        options=options,
        surroundings=surroundings,
    )
    result = app.run(mouse=app.options.mouse)
    return result if result is not None else app.return_code or 0
