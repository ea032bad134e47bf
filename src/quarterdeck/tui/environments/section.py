"""One part of an environment: lines, and below them what went wrong or what to do."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from quarterdeck.client.errors import ClientError, LinkError
from quarterdeck.tui.actions import Where
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.environments.parts import Parts
from quarterdeck.tui.environments.rows import Row, RowList
from quarterdeck.tui.screens.confirm import ConfirmScreen
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import hold_keys
from quarterdeck.tui.widgets.placed import Placed
from quarterdeck.wire.environments import Environment

TRIES = (0.5, 1.0, 2.0)
"""Seconds after each try to read over a line of which the deck knows nothing wrong."""
RESTING = 0.12
"""Seconds that the cursor rests on an environment before what it carries is read."""


class Section(Placed, Vertical):
    """Reads when it is shown; a failure is said in its own line and nothing shown is lost."""

    DEFAULT_CSS = """
    Section {
        height: 1fr;
        & > RowList { height: 1fr; }
        & > .words { height: auto; max-height: 4; color: $text-muted; padding: 0 1; }
        & > .words.trouble { color: $text-error; }
    }
    """
    where: ClassVar[Where]
    widths: ClassVar[tuple[float, ...]] = ()
    hint: ClassVar[str] = ""
    """Said below the lines when there is nothing else to say."""

    class Altered(Message):
        """The environment carries something else now: it counts anew."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts
        self.environment: Environment | None = None
        self.failed = False
        """Whether the last reading failed."""
        self._known = False
        self.rows = RowList(*self.widths)
        """Its lines."""
        self._words = Static(classes="words", markup=False)

    def compose(self) -> ComposeResult:
        yield self.rows
        yield self._words

    @property
    def place(self) -> Where:
        return self.where

    # what each section does

    async def load(self, environment: Environment) -> None:
        """Reads what it shows.

        Raises:
            ClientError: refused or unreachable.
        """

    def lines(self, environment: Environment) -> Sequence[Row]:
        """What it shows of what was read."""
        raise NotImplementedError

    def forget(self) -> None:
        """Nothing of the environment before is shown on another one."""

    # showing

    def show(self, environment: Environment, *, rest: bool = False) -> None:
        """Shows an environment; `rest` waits until the cursor rests on it."""
        if self.environment is None or self.environment.id != environment.id:
            self.forget()
            self.rows.show([Row("", ("Reading …",), "muted")])
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
        # Another section may stand here by the time that all is read.
        if await self._loaded(environment) and self.is_attached:
            self.failed, self._known = False, True
            self.paint()
            self.say(done)

    async def _loaded(self, environment: Environment) -> bool:
        """Reads; says so when that fails.

        A service that was gone for a moment may be back before the deck has noticed: then nobody
        says that it is, so a few tries are made.
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
            self.rows.show([])
        again = keyed("{environments.read} reads again.")
        self.say(f"It could not be read: {error} {again}", trouble=True)

    def paint(self) -> None:
        """Shows what is known."""
        if self.environment is not None:
            self.rows.show(self.lines(self.environment))

    def on_resize(self) -> None:
        """Text is folded into the width there is."""
        if self._known:
            self.paint()

    @property
    def room(self) -> int:
        """Cells of the last column, where there are two."""
        return self.rows.size.width - int(sum(self.widths[:1])) - 4

    def say(self, words: str, *, trouble: bool = False) -> None:
        """One sentence below the lines."""
        self._words.update(one_line(words) or keyed(self.hint))
        self._words.set_class(trouble, "trouble")

    # what a person has done

    @on(RowList.Chosen)
    async def _chosen(self) -> None:
        await self.run_action("edit")

    def open(self, make: Callable[[], ModalScreen[object]]) -> None:
        """Opens a dialog; when it saved something, all is read again."""
        hold_keys(self)
        self._open(make)

    @work
    async def _open(self, make: Callable[[], ModalScreen[object]]) -> None:
        made = await self.app.push_screen_wait(make())
        if made is not None:
            self._altered()

    @work
    async def act(self, deed: Awaitable[object], done: str) -> None:
        """Carries out a deed and says how it went."""
        try:
            await deed
        except ClientError as error:
            self.say(f"{error} {error.next_step}", trouble=True)
        else:
            self._altered(done)

    @work
    async def ask(
        self, question: str, consequence: str, deed: Callable[[], Awaitable[object]], done: str
    ) -> None:
        """Asks before something is taken away."""
        sure = await self.app.push_screen_wait(
            ConfirmScreen(one_line(question), one_line(consequence), "Delete")
        )
        if sure:
            self.act(deed(), done)

    def _altered(self, done: str = "") -> None:
        if self.environment is not None:
            self._show(False, done)
        self.post_message(self.Altered())
