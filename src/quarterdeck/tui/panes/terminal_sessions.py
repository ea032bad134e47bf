"""The sessions of a terminal pane: which are open, what each is called, and how each ends.

found or opened -> shown (a view of its own) -> ended (its last screen stays) -> forgotten
"""

import asyncio
from uuid import UUID

from textual import on, work
from textual.message import Message

from quarterdeck.client.errors import ClientError
from quarterdeck.store.deck import Deck
from quarterdeck.store.terminals import TerminalLink
from quarterdeck.tui.panes.terminal_reading import ReadingPane
from quarterdeck.tui.panes.terminal_words import MOST_OPEN, failed_words, none_open_words
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.tui.terminal.view import TerminalView
from quarterdeck.tui.terminal_source import LinkSource
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import drop_keys
from quarterdeck.tui.widgets.note import Note
from quarterdeck.tui.widgets.switcher import Switcher
from quarterdeck.wire.terminals import (
    MAX_COLS,
    MAX_ROWS,
    MAX_SESSIONS,
    MIN_COLS,
    MIN_ROWS,
    TerminalSession,
)


class SessionsPane(ReadingPane):
    """Who derives from it shows the words and the line, and gives the keys to who should have them."""

    class Gone(Message):
        """A session can be shown no longer."""

        def __init__(self, key: str, error: ClientError) -> None:
            super().__init__()
            self.key = key
            self.error = error

    def __init__(self, deck: Deck, host: EmulatorHost, replica_id: UUID) -> None:
        super().__init__(deck, host, replica_id)
        self._memory = deck.terminals
        self._links: dict[str, TerminalLink] = {}
        self._titles: dict[str, str] = {}
        self._ended: dict[str, int | None] = {}
        self._focus_wanted = False
        self._work = asyncio.Lock()

    async def on_unmount(self) -> None:
        for link in self._links.values():
            await link.close()

    @property
    def _switcher(self) -> Switcher:
        return self.query_one(Switcher)

    @property
    def current(self) -> TerminalView | None:
        """The terminal that is shown, ended or not."""
        shown = self._switcher.visible_content
        return shown if isinstance(shown, TerminalView) else None

    def show_state(self) -> None:
        """Shows what there is to show, for the state that the replica has now."""
        raise NotImplementedError

    def say_instead(self, words: str) -> None:
        """Shows words where no terminal is, and keeps the focus in the pane."""
        raise NotImplementedError

    # one more, one less

    @work(group="sessions")
    async def _find_or_open(self) -> None:
        async with self._work:
            if self._links:
                return
            terminals = self._deck.client.terminals
            try:
                found = await terminals.list(self.replica_id)
                running = [session for session in found if not session.exited]
                if not running:
                    running = [await terminals.create(self.replica_id, *self._room())]
            except ClientError as error:
                self._not_opened(error)
                return
            for session in running:
                await self._add(session)
            self._show_remembered()

    def _show_remembered(self) -> None:
        """The terminal that was shown when the replica was looked at last."""
        shown = self._memory.shown.get(self.replica_id)
        for key, link in self._links.items():
            if link.session.id == shown and key != self._switcher.current:
                focused = self.current is not None and self.current.has_focus
                self._switcher.current = key
                self.show_line()
                if focused:
                    self.take_keys()

    @work(group="sessions")
    async def _open_another(self, instead_of: str | None = None) -> None:
        async with self._work:
            if len(self._links) >= MAX_SESSIONS and instead_of is None:
                self._refuse(MOST_OPEN)
                return
            try:
                session = await self._deck.client.terminals.create(self.replica_id, *self._room())
            except ClientError as error:
                self._not_opened(error)
                return
            await self._add(session)
            if instead_of is not None:
                await self._close(instead_of)

    def _not_opened(self, error: ClientError) -> None:
        self._refuse(f"{error} {error.next_step}")

    def _refuse(self, problem: str) -> None:
        drop_keys(self)
        self._focus_wanted = False
        if self._links:
            self.show_line(one_line(problem))
        else:
            self.say_instead(failed_words(problem))

    def _room(self) -> tuple[int, int]:
        size = self._switcher.size
        columns = max(MIN_COLS, min(MAX_COLS, size.width))
        return columns, max(MIN_ROWS, min(MAX_ROWS, size.height))

    async def _add(self, session: TerminalSession) -> None:
        key = f"terminal-{session.id.hex}"
        link = TerminalLink(self._deck.client, self.replica_id, session)
        self._links[key] = link
        self._titles[key] = session.title
        source = LinkSource(link, lambda error: self._tell_gone(key, error))
        view = TerminalView(source, self._host, id=key)
        if not await self._switcher.bring(view):
            return
        self.show_line()
        note_focused = self.query_one("#no-terminal", Note).has_focus
        if self._focus_wanted or note_focused:
            self.take_keys()

    def _tell_gone(self, key: str, error: ClientError) -> None:
        self.post_message(self.Gone(key, error))

    async def _forget(self, key: str) -> None:
        """Shows a session no longer; what runs in it is not touched."""
        link = self._links.pop(key, None)
        self._titles.pop(key, None)
        self._ended.pop(key, None)
        self._offered.pop(key, None)
        if link is None:
            return
        if self._switcher.current == key:
            if self._links:
                self._next()
            else:
                self.say_instead(none_open_words())
        await link.close()
        await self._switcher.query(f"#{key}").remove()
        self.show_line()

    async def _close(self, key: str) -> None:
        link = self._links.get(key)
        await self._forget(key)
        if link is None:
            return
        self._memory.name(link.session.id, "")
        try:
            await self._deck.client.terminals.close(self.replica_id, link.session.id)
        except ClientError as error:
            self.show_line(one_line(f"{error} {error.next_step}"))

    @work(group="sessions")
    async def _forget_all(self) -> None:
        async with self._work:
            for key in list(self._links):
                await self._forget(key)
        # Words of a replica at rest, not of a pane that was emptied.
        self.show_state()

    @work(group="sessions")
    async def _close_current(self) -> None:
        key = self._switcher.current
        if key is None or key not in self._links:
            return
        async with self._work:
            await self._close(key)
        if not self._links:
            self.post_message(self.Left("list"))

    @on(Gone)
    async def _session_gone(self, event: Gone) -> None:
        event.stop()
        await self._forget(event.key)
        if not self._links:
            self.show_state()

    # which one is shown

    def _next(self, step: int = 1) -> None:
        keys = list(self._links)
        if keys:
            current = self._switcher.current
            at = keys.index(current) if current in keys else -1
            self._show(keys[(at + step) % len(keys)])

    def _show(self, key: str) -> None:
        self.leave_reading()
        self._switcher.current = key
        if (link := self._links.get(key)) is not None:
            self._memory.shown[self.replica_id] = link.session.id
        self.show_line()
        self.take_keys()

    # what the views tell

    def on_terminal_view_title_changed(self, event: TerminalView.TitleChanged) -> None:
        if event.view.id in self._titles and event.title:
            self._titles[event.view.id] = event.title
            self.show_line()

    def on_terminal_view_ended(self, event: TerminalView.Ended) -> None:
        if event.view.id in self._links:
            self._ended[event.view.id] = event.code
            self.show_line()
