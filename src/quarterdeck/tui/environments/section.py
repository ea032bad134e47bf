"""The base of an environment's sections, and their rows."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from textwrap import wrap
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from quarterdeck.client.errors import ClientError, LinkError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.environments import Contents, EnvironmentBook, HookEditor, Scope
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, keyed
from quarterdeck.tui.kit.dialogs import ConfirmScreen
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.rows import ColumnCell, RowList, columns
from quarterdeck.tui.kit.spans import Emphasis, Line, TextRole
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.wire.environments import Environment, WarmPool

LEAST_ROOM = 20
"""Width in cells below which text is cut rather than wrapped."""
HIDDEN = "••••••••"
"""Shown instead of a secret, whatever its length."""

TITLES = {
    Scope.GLOBAL: "Everywhere",
    Scope.ORGANIZATION: "Organization",
    Scope.OWN: "Your own",
}


def moment(at: datetime) -> str:
    """Return a local time."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def day(at: datetime) -> str:
    """Return a local date."""
    return at.astimezone().strftime("%Y-%m-%d")


def pool_note(pool: WarmPool | None) -> tuple[str, str]:
    """Return a pool's state in a word or two, and its style."""
    if pool is None or not pool.enabled:
        return "", "plain"
    if pool.last_failure_reason is not None and not pool.ready_count:
        return "✗ pool", "error"
    if pool.ready_count:
        return f"● {pool.ready_count} warm", "plain"
    return "◌ warming", "plain"


def counted(count: int, word: str) -> str:
    """Return a count with its noun, as in `1 line` and `2 lines`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def size_of(text: str) -> str:
    """Return the size of a text."""
    return counted(len(text.splitlines()), "line") if text else "empty"


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, wrapped at spaces to the available width."""
    room = max(width, LEAST_ROOM)
    return [
        part
        for line in text.splitlines()
        for part in wrap(line, room, drop_whitespace=True, replace_whitespace=False) or [""]
    ]


GAP = ColumnCell(" ")
STYLES = {
    "plain": (TextRole.TEXT, Emphasis.NONE),
    "muted": (TextRole.DIM, Emphasis.NONE),
    "heading": (TextRole.HEADING, Emphasis.BOLD),
    "warning": (TextRole.WARNING, Emphasis.NONE),
    "error": (TextRole.FAILED, Emphasis.NONE),
}


@dataclass(frozen=True)
class TableRow:
    """One line in columns. One without a key cannot be selected: a heading, or text.

    `style` is one of `STYLES`, `widths` are those of the table.
    """

    key: str
    cells: tuple[str, ...]
    style: str = "plain"
    widths: tuple[float, ...] = ()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        role, marks = STYLES[self.style]
        parts: list[ColumnCell] = []
        for text, share in zip_longest(self.cells, self.widths[: len(self.cells) - 1], fillvalue=0):
            room = int(share * width) if 0 < share < 1 else int(share)
            parts += (GAP, ColumnCell(one_line(str(text)), role, room or -1, marks))
        return (columns(width, *parts),)


class Table(RowList[str]):
    """Lines of equal columns, without their own colors while the cursor is on them."""

    DEFAULT_CSS = "Table > .rows--cursor { color: $foreground; }"

    def show_table(self, rows: Iterable[TableRow], *widths: float) -> None:
        """Show rows. `widths` of all columns but the last: cells, or below 1 a share of the width."""
        self.show_rows([replace(row, widths=widths) for row in rows])


@dataclass(frozen=True)
class Parts:
    """The state that the screen shows."""

    book: EnvironmentBook
    contents: Contents
    hooks: HookEditor
    lost: Callable[[Exception], None]
    """Notified of a lost connection: the app state notices it, and reports when the connection is back."""
    online: Callable[[], bool]
    """Whether the app state knows of no problem with the connection."""

    @classmethod
    def of(cls, app_state: AppState) -> "Parts":
        """Return the parts, which use the client of the app state."""
        book = EnvironmentBook(app_state)
        return cls(
            book,
            Contents(app_state, book),
            HookEditor(app_state),
            app_state.connection_lost,
            lambda: app_state.online,
        )


TRIES = (0.5, 1.0, 2.0)
"""Seconds after each attempt to read over a connection that the cockpit believes to be good."""
RESTING = 0.12
"""Seconds that the cursor rests on an environment before its parts are read."""


class Section(HasKeyContext, Vertical):
    """Reads when it is shown; a failure is reported in a separate line and the content is kept."""

    DEFAULT_CSS = """
    Section {
        height: 1fr;
        & > Table { height: 1fr; }
        & > .words { height: auto; max-height: 4; color: $text-muted; padding: 0 1; }
        & > .words.trouble { color: $text-error; }
    }
    """
    where: ClassVar[KeyContext]
    widths: ClassVar[tuple[float, ...]] = ()
    hint: ClassVar[str] = ""
    """Shown below the lines when there is nothing else to say."""

    class Altered(Message):
        """The parts of the environment have changed: its counts are updated."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts
        self.environment: Environment | None = None
        self.failed = False
        """Whether the last reading failed."""
        self._known = False
        self.rows = Table()
        """Its lines."""
        self._words = Static(classes="words", markup=False)

    def compose(self) -> ComposeResult:
        yield self.rows
        yield self._words

    @property
    def place(self) -> KeyContext:
        return self.where

    # what each section does

    async def load(self, environment: Environment) -> None:
        """Read the content.

        Raises:
            ClientError: refused or unreachable.
        """

    def lines(self, environment: Environment) -> Sequence[TableRow]:
        """Return the rows of what was read."""
        raise NotImplementedError

    def forget(self) -> None:
        """Forget the previous environment, of which nothing is shown on another one."""

    # showing

    def show(self, environment: Environment, *, rest: bool = False) -> None:
        """Show an environment; `rest` waits until the cursor rests on it."""
        if self.environment is None or self.environment.id != environment.id:
            self.forget()
            self.rows.show_table([TableRow("", ("Reading …",), "muted")])
            self._known = False
        self.environment = environment
        self._show(rest, "")

    @work(exclusive=True, group="show")
    async def _show(self, rest: bool, done: str) -> None:
        environment = self.environment
        if environment is None:
            return
        if rest:
            await asyncio.sleep(RESTING)
        # Keys typed after the one that opens a section are for its rows.
        hold = nullcontext() if rest or self._known else hold_keys(self, "Reading the environment")
        with hold:
            # Another section may be shown by the time that all is read.
            if await self._loaded(environment) and self.is_attached:
                self.failed, self._known = False, True
                self.paint()
                self.say(done)

    async def _loaded(self, environment: Environment) -> bool:
        """Read; show a message when that fails.

        A service that was briefly unavailable may be back before the app state has noticed: then nothing
        reports its return, so a few attempts are made.
        """
        for pause in TRIES:
            try:
                await self.load(environment)
            except LinkError as error:
                self._say_failed(error)
                self.parts.lost(error)
            except ClientError as error:
                self._say_failed(error)
                return False
            else:
                return True
            await asyncio.sleep(pause)
            if not self.parts.online():
                return False
        return False

    def _say_failed(self, error: ClientError) -> None:
        self.failed = True
        if not self.is_attached:
            return
        if not self._known:
            self.rows.show_rows([])
        again = keyed("{environments.read} to retry.")
        self.say(f"Could not be read: {error} {again}", is_error=True)

    def paint(self) -> None:
        """Show the current state."""
        if self.environment is not None:
            self.rows.show_table(self.lines(self.environment), *self.widths)

    def on_resize(self) -> None:
        """Wrap text to the available width."""
        if self._known:
            self.paint()

    @property
    def room(self) -> int:
        """Width of the last column, where there are two."""
        return self.rows.size.width - int(sum(self.widths[:1])) - 4

    def say(self, words: str, *, is_error: bool = False) -> None:
        """Show one sentence below the lines."""
        self._words.update(one_line(words) or keyed(self.hint))
        self._words.set_class(is_error, "trouble")

    # user actions

    @on(Table.Chosen)
    async def _chosen(self) -> None:
        await self.run_action("edit")

    def open(self, make: Callable[[], ModalScreen[object]]) -> None:
        """Open a dialog; when it saved something, everything is read again."""
        self._open(make)

    @work
    async def _open(self, make: Callable[[], ModalScreen[object]]) -> None:
        saved = await self.app.push_screen_wait(make())
        if saved is not None:
            self._altered()

    @work
    async def act(self, request: Awaitable[object], done: str) -> None:
        """Carry out a command and show the result."""
        try:
            await request
        except ClientError as error:
            self.say(f"{error} {error.next_step}", is_error=True)
        else:
            self._altered(done)

    @work
    async def ask(
        self, question: str, consequence: str, request: Callable[[], Awaitable[object]], done: str
    ) -> None:
        """Ask before something is removed."""
        sure = await self.app.push_screen_wait(
            ConfirmScreen(one_line(question), one_line(consequence), "Delete")
        )
        if sure:
            self.act(request(), done)

    def _altered(self, done: str = "") -> None:
        if self.environment is not None:
            self._show(False, done)
        self.post_message(self.Altered())
