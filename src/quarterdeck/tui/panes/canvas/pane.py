"""The canvas of a replica.

    items -> enter -> rendered markdown, or text -> s -> file of this machine
    file of this machine -> u -> there at once, or when the replica starts

No event tells of a canvas: it is read when it is looked at, and when a turn has ended.
"""

import asyncio
from pathlib import Path
from typing import ClassVar
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.canvas import CanvasShelf, OpenItem
from quarterdeck.store.deck import Deck
from quarterdeck.store.local_files import (
    FileThereError,
    LocalFileError,
    local_path,
    read_local,
    save_local,
)
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.panes.canvas.reader import CanvasReader
from quarterdeck.tui.panes.canvas.words import (
    WAITING,
    empty_words,
    item_row,
    unreadable_words,
    uploaded_words,
    waiting_row,
)
from quarterdeck.tui.panes.reading_tab import ReadingTab
from quarterdeck.tui.reading.deeds import Deed, Doer
from quarterdeck.tui.reading.path_field import PathField
from quarterdeck.tui.reading.row_list import RowList
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys
from quarterdeck.tui.widgets.placed import Placed
from quarterdeck.wire.canvas import CANVAS_LIMIT, display_path


class ItemList(RowList, Doer, Placed):
    """What lies on the canvas."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.CANVAS)]

    @property
    def place(self) -> Where:
        return Where.CANVAS


class CanvasPane(ReadingTab):
    """The items, or one of them; below it a path while one is asked for."""

    DEFAULT_CSS = """
    CanvasPane {
        & ItemList { height: 1fr; }
        & CanvasReader { height: 1fr; display: none; }
        &.reading ItemList { display: none; }
        &.reading CanvasReader { display: block; }
        & #canvas-said { height: auto; max-height: 3; padding: 0 1; color: $text-muted; display: none; }
        & #canvas-said.trouble { color: $text-error; }
    }
    """

    def __init__(self, deck: Deck, replica_id: UUID) -> None:
        super().__init__(deck, replica_id)
        self._shelf = CanvasShelf(deck, replica_id)
        self._saving: OpenItem | None = None
        """What a path is asked for; None while it is for an upload."""

    def compose(self) -> ComposeResult:
        yield ItemList()
        yield CanvasReader()
        yield Static(id="canvas-said", markup=False)
        yield PathField()

    @property
    def place(self) -> Where:
        return Where.CANVAS

    @property
    def list(self) -> ItemList:
        return self.query_one(ItemList)

    @property
    def reader(self) -> CanvasReader:
        return self.query_one(CanvasReader)

    @property
    def path_field(self) -> PathField:
        return self.query_one(PathField)

    @property
    def keys_target(self) -> Widget:
        return self.reader.text if self.has_class("reading") else self.list

    def say(self, words: str, *, trouble: bool = False) -> None:
        """One line for what was done, or what went wrong."""
        line = self.query_one("#canvas-said", Static)
        line.display = bool(words)
        line.set_class(trouble, "trouble")
        line.update(one_line(words))

    def _refused(self, error: ClientError) -> None:
        self.say(f"{error} {error.next_step}", trouble=True)

    # what makes it read

    def read(self) -> None:
        self._read()

    def show_state(self) -> None:
        if self.moved_on():
            self._read()

    @work(group="read", exclusive=True)
    async def _read(self) -> None:
        state = self._deck.replicas.get(self.replica_id)
        if not unreadable_words(state):
            try:
                await self._shelf.read()
            except ClientError as error:
                self._refused(error)
        self._show_items()

    def _show_items(self) -> None:
        items = self._shelf.items
        state = self._deck.replicas.get(self.replica_id)
        self.list.empty = empty_words(state, was_read=items is not None)
        # What cannot be opened now is not offered.
        there = [] if unreadable_words(state) else [item_row(item) for item in items or ()]
        self.list.show_rows([*there, *(waiting_row(one) for one in self._shelf.waiting)])

    # what the person does

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self._open(self.list.selected)

    @on(Deed)
    def _deed(self, event: Deed) -> None:
        event.stop()
        self.say("")
        match event.name:
            case "open":
                self._open(self.list.selected)
                return
            case "items":
                self.remove_class("reading")
                self.screen.set_focus(self.list)
            case "source":
                self.reader.turn()
            case "upload":
                self._saving = None
                self.path_field.ask("Upload")
            case "save":
                self._save()
                return
            case "mention":
                self._mention()
                return
            case _:
                self._read()
                if self.has_class("reading") and self.reader.item is not None:
                    self._open(self.reader.item.filename)
        release_keys(self)

    @property
    def _meant(self) -> str:
        """The name of the item that keys mean; empty for none."""
        if self.has_class("reading") and self.reader.item is not None:
            return self.reader.item.filename
        return self.list.selected

    def _mention(self) -> None:
        key = self._meant
        waiting = (one for one in self._shelf.waiting if f"{WAITING}{one.upload_id}" == key)
        upload = next(waiting, None)
        path = upload.file_path if upload else display_path(key)
        if key:
            # The chat takes the keys, and releases them.
            sent = (upload.original_name, upload.upload_id or "") if upload else None
            self.post_message(self.Mentioned(f"{one_line(path)} ", sent))
        else:
            release_keys(self)

    @work(group="open", exclusive=True)
    async def _open(self, key: str, *, to_save: bool = False) -> None:
        """Keys are held until it is there."""
        try:
            if key and not key.startswith(WAITING):
                self._take(await self._shelf.open(key), to_save=to_save)
        except ClientError as error:
            self._refused(error)
        finally:
            release_keys(self)

    def _take(self, item: OpenItem, *, to_save: bool) -> None:
        if to_save:
            self._ask_where(item)
            return
        self.reader.show_item(item)
        self.add_class("reading")
        self.screen.set_focus(self.reader.text)

    # a file of this machine

    def _save(self) -> None:
        if self.has_class("reading") and self.reader.item is not None:
            self._ask_where(self.reader.item)
            release_keys(self)
        else:
            self._open(self.list.selected, to_save=True)

    def _ask_where(self, item: OpenItem) -> None:
        if item.data is None:
            self.say("It is too large to be sent, so it cannot be saved here.", trouble=True)
            return
        self._saving = item
        self.path_field.ask("Save as", item.filename.rpartition("/")[2])

    @on(PathField.Done)
    def _path_typed(self, event: PathField.Done) -> None:
        event.stop()
        release_keys(self)
        if not event.path.strip():
            self._end_asking()
        elif (item := self._saving) is not None and item.data is not None:
            self._save_as(event.path, item.data)
        else:
            self._upload(event.path)

    def _end_asking(self) -> None:
        self.path_field.close()
        self.screen.set_focus(self.keys_target)

    @work(group="local", exclusive=True)
    async def _save_as(self, typed: str, data: bytes) -> None:
        from quarterdeck.tui.screens.confirm import ConfirmScreen

        try:
            path = local_path(typed, Path.cwd())
            try:
                await asyncio.to_thread(save_local, path, data)
            except FileThereError:
                words = f"{one_line(str(path))} is there already: what is in it now goes."
                screen = ConfirmScreen("Replace the file?", words, "Replace")
                if not await self.app.push_screen_wait(screen):
                    return
                await asyncio.to_thread(lambda: save_local(path, data, replace=True))
        except LocalFileError as error:
            self.path_field.refuse(str(error))
            return
        self._end_asking()
        self.say(f"Saved as {path}.")

    @work(group="local", exclusive=True)
    async def _upload(self, typed: str) -> None:
        try:
            path = local_path(typed, Path.cwd())
            data = await asyncio.to_thread(read_local, path, CANVAS_LIMIT)
            upload = await self._shelf.upload(path.name, data)
        except LocalFileError as error:
            self.path_field.refuse(str(error))
            return
        except ClientError as error:
            self.path_field.refuse(f"{error} {error.next_step}")
            return
        self.remove_class("reading")
        self._end_asking()
        self.say(uploaded_words(upload))
        self._read()
