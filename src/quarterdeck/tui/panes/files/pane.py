"""The files of a replica.

    typing -> search (older ones are canceled) -> found -> enter -> file
    replica woken, turn ended -> searched and read anew

Side by side where there is room, else one of the two at a time.
"""

import asyncio
from typing import Any, cast
from uuid import UUID

from textual import events, on, work
from textual.app import App, ComposeResult
from textual.widget import Widget

from quarterdeck.client.errors import ClientError, NotActive
from quarterdeck.store.deck import Deck
from quarterdeck.store.files import FileFinder
from quarterdeck.store.files_content import OpenFile, read_file
from quarterdeck.transcript.clean import clean
from quarterdeck.tui.actions import Where
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.copying import copy_text
from quarterdeck.tui.outside.copies import look_at
from quarterdeck.tui.outside.programs import OutsideError, editor, pager
from quarterdeck.tui.panes.files.finder import Finder, FinderField
from quarterdeck.tui.panes.files.viewer import FileReader
from quarterdeck.tui.panes.files.words import unreadable_words
from quarterdeck.tui.panes.reading_tab import ReadingTab
from quarterdeck.tui.reading.deeds import Deed
from quarterdeck.tui.reading.row_list import RowList
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys

BESIDE = 100
"""Columns from which on finder and file stand side by side."""
REST = 0.08
"""Seconds that typing rests before a search is sent."""


class FilesPane(ReadingTab):
    """A finder, and the file that was opened last."""

    DEFAULT_CSS = """
    FilesPane {
        layout: horizontal;
        & Finder { width: 1fr; }
        & FileReader { width: 1fr; display: none; }
        &.reading Finder { display: none; }
        &.reading FileReader { display: block; }
        &.beside Finder { display: block; width: 2fr; border-right: solid $panel-lighten-2; }
        &.beside.opened FileReader { display: block; width: 3fr; }
    }
    """

    def __init__(self, deck: Deck, replica_id: UUID) -> None:
        super().__init__(deck, replica_id)
        self._files = FileFinder(deck, replica_id)
        self._open_when_found = False
        """Enter came before the answer to what was typed: the keys are held for it."""

    def compose(self) -> ComposeResult:
        yield Finder(self._files)
        yield FileReader()

    @property
    def place(self) -> Where:
        return Where.FOUND

    @property
    def finder(self) -> Finder:
        return self.query_one(Finder)

    @property
    def reader(self) -> FileReader:
        return self.query_one(FileReader)

    @property
    def keys_target(self) -> Widget:
        return self.reader.text if self.has_class("reading") else self.finder.field

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "beside")

    # what makes it search

    def read(self) -> None:
        self._search()

    def hidden(self) -> None:
        super().hidden()
        self.workers.cancel_group(self, "search")

    def show_state(self) -> None:
        if not self.moved_on():
            return
        self.finder.say("")
        self._search()
        state, file = self._deck.replicas.get(self.replica_id), self.reader.file
        if state is not None and state.active and not state.works and file:
            self._open(file.repo_name, file.path, again=True)

    @on(FinderField.Changed)
    def _field_changed(self, event: FinderField.Changed) -> None:
        event.stop()
        self.finder.say("")
        self._search(rest=REST)

    @work(group="search", exclusive=True)
    async def _search(self, *, rest: float = 0.0, refresh: bool = False) -> None:
        """The newest search cancels the one before."""
        await asyncio.sleep(rest)
        finder = self.finder
        try:
            if await self._files.search(self._typed, refresh=refresh):
                finder.show_found()
                self._open_if_awaited()
            await self._files.settle(finder.show_found)
        except ClientError as error:
            finder.say(f"{error} {error.next_step}")
            self._open_when_found = False
            release_keys(self)

    @property
    def _typed(self) -> str:
        return self.finder.field.value.strip()

    def _open_if_awaited(self) -> None:
        if self._open_when_found:
            self._open_when_found = False
            self._open_chosen()

    @on(RowList.EndNear)
    def _end_near(self, event: RowList.EndNear) -> None:
        event.stop()
        if self._files.has_more:
            self._more()

    @work(group="more", exclusive=True)
    async def _more(self) -> None:
        try:
            if await self._files.more():
                self.finder.show_found()
        except ClientError as error:
            self.finder.say(f"{error} {error.next_step}")

    # what the person does

    @on(RowList.Chosen)
    def _row_chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self._open_chosen()

    @on(Deed)
    def _deed(self, event: Deed) -> None:
        event.stop()
        found = self.finder.found
        self.finder.say("")
        match event.name:
            case "open":
                self._open_chosen()
                return
            case "down":
                found.action_move(1)
            case "up":
                found.action_move(-1)
            case "page-down":
                found.action_page(1)
            case "page-up":
                found.action_page(-1)
            case "found":
                self.screen.set_focus(found)
            case "finder":
                self._to_finder()
            case "again":
                self._again()
            case _:
                self._with_file(event.name)
                return
        release_keys(self)

    def _to_finder(self) -> None:
        self.remove_class("reading")
        self.screen.set_focus(self.finder.field)

    def _again(self) -> None:
        self._search(refresh=True)
        if self._reads and (file := self.reader.file) is not None:
            self._open(file.repo_name, file.path, again=True)

    @property
    def _reads(self) -> bool:
        focused = self.screen.focused
        return focused is not None and self.reader in focused.ancestors

    @property
    def _meant(self) -> tuple[str, str, str] | None:
        """Repository, path, and what an agent knows it by, of the file that keys mean."""
        file = (self._reads and self.reader.file) or self.finder.chosen
        if file is None:
            return None
        state = self._deck.replicas.get(self.replica_id)
        # An agent begins in the only repository, else above all of them.
        only = state is not None and len(state.record.repository_statuses) == 1
        return file.repo_name, file.path, file.path if only else f"{file.repo_name}/{file.path}"

    def _with_file(self, deed: str) -> None:
        if (meant := self._meant) is None:
            release_keys(self)
            return
        repo_name, path, said = meant
        match deed:
            case "copy-path":
                copy_text(self, one_line(said))
                release_keys(self)
            case "mention":
                # The chat takes the keys, and releases them.
                self.post_message(self.Mentioned(f"@{one_line(said)} "))
            case _:
                self._open(repo_name, path, deed=deed)

    def _open_chosen(self) -> None:
        """Opens the best match of what is typed, as soon as it is known. Keys are held."""
        if self._files.asked != self._typed:
            self._open_when_found = True
        elif (found := self.finder.chosen) is not None:
            self._open(found.repo_name, found.path)
        else:
            release_keys(self)

    @work(group="open", exclusive=True)
    async def _open(
        self, repo_name: str, path: str, *, again: bool = False, deed: str = "read"
    ) -> None:
        try:
            file = await read_file(self._deck, self.replica_id, repo_name, path)
        except ClientError as error:
            self._not_read(path, error)
        else:
            await self._take(file, again=again, deed=deed)
        finally:
            release_keys(self)

    async def _take(self, file: OpenFile, *, again: bool, deed: str) -> None:
        if deed != "read":
            await self._outside(deed, file)
            return
        self.add_class("opened")
        self.reader.show_file(file)
        if not again:
            self.add_class("reading")
            self.screen.set_focus(self.reader.text)

    def _not_read(self, path: str, error: ClientError) -> None:
        words = unreadable_words(self._deck.replicas.get(self.replica_id))
        if not (isinstance(error, NotActive) and words):
            words = f"{path}: {error} {error.next_step}"
        (self.reader if self._reads else self.finder).say(words)

    async def _outside(self, deed: str, file: OpenFile) -> None:
        app, problem = cast("App[Any]", self.app), ""
        try:
            if deed == "edit":
                await look_at(app, file.name, file.data, editor)
            elif file.text is None:
                problem = f"{file.name} is not a text: " + keyed("{file.edit} opens it in $EDITOR.")
            else:
                # A pager may pass control sequences on to the terminal; an editor shows them.
                text = clean(file.text).encode(errors="replace")
                await look_at(app, file.name, text, pager)
        except OutsideError as error:
            problem = str(error)
        (self.reader if self._reads else self.finder).say(problem)
