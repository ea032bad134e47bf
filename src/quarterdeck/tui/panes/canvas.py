"""The Canvas tab.

The canvas of a replica.

    items -> enter -> rendered markdown, or text -> s -> file of this machine
    file of this machine -> u -> uploaded at once, or when the replica starts

No event reports changes of a canvas: it is read when it is shown, and when a turn has ended.
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
from quarterdeck.store.app_state import AppState
from quarterdeck.store.files import (
    CanvasState,
    FileThereError,
    LocalFileError,
    OpenItem,
    local_path,
    read_local,
    save_local,
    size_words,
)
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import KeyContext, eager_bindings, keyed
from quarterdeck.tui.kit.fields import PathField
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.pages import MarkdownPage, OutputPage, SourcePage
from quarterdeck.tui.kit.picture_reader import PictureReader
from quarterdeck.tui.kit.rows import Row, RowList
from quarterdeck.tui.kit.spans import Span, TextRole
from quarterdeck.tui.kit.text_view import ForwardsToPane, PaneAction
from quarterdeck.tui.panes.tabs import ReadingTab
from quarterdeck.tui.screens.picture import view_image
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.wire.files import CANVAS_LIMIT, CanvasItem, CanvasUpload, display_path
from quarterdeck.wire.replicas import WorkspaceStatus

WAITING = "waiting\0"
"""Prefix of the key of a row of a pending upload."""
READING = "reading …"
NOTHING = (
    "The canvas is empty.\n\n"
    "Agents write plans and reports to ~/.quarterdeck/canvas. {canvas.upload} uploads a file."
)


def item_row(item: CanvasItem) -> Row:
    """Return the row of an item."""
    note = f"{item.kind:>8}  {size_words(item.size_bytes):>10}"
    return Row(item.filename, (Span(f" {name_line(item.filename)}"),), (Span(note, TextRole.DIM),))


def waiting_row(upload: CanvasUpload) -> Row:
    """Return the row of an upload that waits for the replica to start."""
    words = (Span(" ◌ ", TextRole.WARNING), Span(name_line(upload.original_name)))
    note = f"waits for the start  {size_words(upload.size_bytes):>10}"
    return Row(f"{WAITING}{upload.upload_id}", words, (Span(note, TextRole.DIM),))


def empty_words(state: ReplicaState | None, *, was_read: bool) -> str:
    """Return the text shown where there are no items."""
    reason = unreadable_words(state)
    if reason:
        return reason
    return keyed(NOTHING) if was_read else READING


def unreadable_words(state: ReplicaState | None) -> str:
    """Return why the canvas cannot be read in this state; empty when it can."""
    match state.status if state else WorkspaceStatus.ACTIVE:
        case WorkspaceStatus.ACTIVE:
            return ""
        case WorkspaceStatus.PREPARING:
            return keyed(
                "Preparing: its canvas is available when it has started.\n"
                "{canvas.upload}: uploads are written when it has started."
            )
        case WorkspaceStatus.ERROR:
            return keyed(
                "Failed. {replica.wake} retries; then its canvas can be read and uploaded to."
            )
        case status:
            return f"{status.capitalize()}: " + keyed(
                "{replica.wake} wakes it; then its canvas can be read.\n"
                "{canvas.upload}: uploads are written when it starts."
            )


def item_facts(item: OpenItem) -> str:
    """Return the text at the right of the title."""
    return f"{one_line(item.mime_type)}  {size_words(item.size)}"


def instead_words(item: OpenItem) -> str:
    """Return the text shown when an item cannot be displayed."""
    if item.data is None:
        most = size_words(CANVAS_LIMIT)
        return f"Larger than {most} ({size_words(item.size)}), so it is not sent.\n\nm mentions it in a message."
    return f"{item.kind} of type {item.mime_type}, {size_words(item.size)}.\n\nA terminal does not show it: s saves it to a file of this machine."


def uploaded_words(upload: CanvasUpload) -> str:
    """Return the result of an upload."""
    name = upload.file_path
    if upload.upload_id is None:
        return f"Put there as {name}."
    return f"Queued: {name} is written when the replica starts. A message wakes it (m mentions the file)."


class CanvasReader(PictureReader):
    """Markdown is rendered, until its source is requested."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.CANVAS_FILE)]

    def __init__(self) -> None:
        super().__init__()
        self.item: OpenItem | None = None
        self._as_text = False

    @property
    def place(self) -> KeyContext:
        return KeyContext.CANVAS_FILE

    async def show_item(self, item: OpenItem) -> None:
        """Show an item; one that was read again keeps its scroll position."""
        before, self.item = self.item, item
        if item.data is not None and item.is_image:
            if before != item or self.picture is None:
                words = instead_words(item)
                facts = item_facts(item)
                await self.show_picture(item.filename, item.data, facts=facts, instead=words)
            return
        self._show(keep=before is not None and before.filename == item.filename)

    def turn(self) -> None:
        """Show Markdown as its source, or rendered again."""
        if self.item is not None and self.item.is_markdown:
            self._as_text = not self._as_text
            self._show(keep=False)

    def _show(self, *, keep: bool) -> None:
        item = self.item
        if item is None:
            return
        facts = item_facts(item)
        if item.text is None:
            self.show_page(item.filename, OutputPage(instead_words(item)), facts=facts)
        elif item.is_markdown and not self._as_text:
            self.show_page(item.filename, MarkdownPage(item.text), facts=facts, keep=keep)
        else:
            page = SourcePage(item.text)
            self.show_page(item.filename, page, facts=facts, keep=keep)
            self.color(item.filename, page)


class ItemList(RowList[str], ForwardsToPane, HasKeyContext):
    """The items on the canvas."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.CANVAS)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.CANVAS


class CanvasPane(ReadingTab):
    """The items, or one of them; below it a path field while one is needed."""

    DEFAULT_CSS = """
    CanvasPane {
        & ItemList { height: 1fr; }
        & CanvasReader { height: 1fr; display: none; }
        &.reading ItemList { display: none; }
        &.reading CanvasReader { display: block; }
        & #canvas-message { height: auto; max-height: 3; padding: 0 1; color: $text-muted; display: none; }
        & #canvas-message.trouble { color: $text-error; }
    }
    """

    def __init__(self, app_state: AppState, replica_id: UUID) -> None:
        super().__init__(app_state, replica_id)
        self._canvas_state = CanvasState(app_state, replica_id)
        self._saving: OpenItem | None = None
        """The item to save at the path; None while the path is for an upload."""

    def compose(self) -> ComposeResult:
        yield ItemList()
        yield CanvasReader()
        yield Static(id="canvas-message", markup=False)
        yield PathField()

    @property
    def place(self) -> KeyContext:
        return KeyContext.CANVAS

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
        return self.reader.front if self.has_class("reading") else self.list

    def say(self, words: str, *, is_error: bool = False) -> None:
        """Show one line about the result of an action."""
        line = self.query_one("#canvas-message", Static)
        line.display = bool(words)
        line.set_class(is_error, "trouble")
        line.update(one_line(words))

    def _refused(self, error: ClientError) -> None:
        self.say(f"{error} {error.next_step}", is_error=True)

    # when it is read

    def read(self) -> None:
        self._read()

    def show_state(self) -> None:
        if self.moved_on():
            self._read()

    @work(group="read", exclusive=True)
    async def _read(self) -> None:
        await self._read_items()

    async def _read_items(self) -> None:
        state = self._app_state.replicas.get(self.replica_id)
        if not unreadable_words(state):
            try:
                await self._canvas_state.read()
            except ClientError as error:
                self._refused(error)
        self._show_items()

    def _show_items(self) -> None:
        items = self._canvas_state.items
        state = self._app_state.replicas.get(self.replica_id)
        self.list.empty = empty_words(state, was_read=items is not None)
        # What cannot be opened now is not offered.
        there = [] if unreadable_words(state) else [item_row(item) for item in items or ()]
        self.list.show_rows(
            [*there, *(waiting_row(upload) for upload in self._canvas_state.waiting)]
        )

    # user actions

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self._open(self.list.chosen or "")

    @on(PaneAction)
    def _carry_out(self, event: PaneAction) -> None:
        event.stop()
        self.say("")
        match event.name:
            case "open":
                self._open(self.list.chosen or "")
            case "items":
                self.remove_class("reading")
                self.screen.set_focus(self.list)
            case "source" if self.reader.picture is not None:
                self._view()
            case "source":
                self.reader.turn()
            case "upload":
                self._saving = None
                self.path_field.ask("Upload")
            case "save":
                self._save()
            case "mention":
                self._mention()
            case _:
                self._read()
                if self.has_class("reading") and self.reader.item is not None:
                    self._open(self.reader.item.filename)

    @work(group="open", exclusive=True)
    async def _view(self) -> None:
        item = self.reader.item
        if item is not None:
            self.say(await view_image(self, self._app_state, item.data or b"", item.is_image))

    @property
    def _meant(self) -> str:
        """The name of the item that keys apply to; empty for none."""
        if self.has_class("reading") and self.reader.item is not None:
            return self.reader.item.filename
        return self.list.chosen or ""

    def _mention(self) -> None:
        key = self._meant
        waiting = (one for one in self._canvas_state.waiting if f"{WAITING}{one.upload_id}" == key)
        upload = next(waiting, None)
        path = upload.file_path if upload else display_path(key)
        if key:
            sent = (upload.original_name, upload.upload_id or "") if upload else None
            self.post_message(self.Mentioned(f"{one_line(path)} ", sent))

    @work(group="open", exclusive=True)
    async def _open(self, key: str, *, to_save: bool = False) -> None:
        if not key or key.startswith(WAITING):
            return
        with hold_keys(self, "Opening the file"):
            try:
                await self._take(await self._canvas_state.open(key), to_save=to_save)
            except ClientError as error:
                self._refused(error)

    async def _take(self, item: OpenItem, *, to_save: bool) -> None:
        if to_save:
            self._ask_where(item)
            return
        await self.reader.show_item(item)
        self.add_class("reading")
        self.screen.set_focus(self.reader.front)

    # a file of this machine

    def _save(self) -> None:
        if self.has_class("reading") and self.reader.item is not None:
            self._ask_where(self.reader.item)
        else:
            self._open(self.list.chosen or "", to_save=True)

    def _ask_where(self, item: OpenItem) -> None:
        if item.data is None:
            self.say("Too large to be sent, so it cannot be saved here.", is_error=True)
            return
        self._saving = item
        self.path_field.ask("Save as", item.filename.rpartition("/")[2])

    @on(PathField.Done)
    def _path_typed(self, event: PathField.Done) -> None:
        event.stop()
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
        from quarterdeck.tui.kit.dialogs import ConfirmScreen

        try:
            path = local_path(typed, Path.cwd())
            try:
                await asyncio.to_thread(save_local, path, data)
            except FileThereError:
                words = f"{one_line(str(path))} exists and would be overwritten."
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
        # Keys that follow are for the list, and for what is in it then.
        with hold_keys(self, "Uploading"):
            try:
                path = local_path(typed, Path.cwd())
                data = await asyncio.to_thread(read_local, path, CANVAS_LIMIT)
                upload = await self._canvas_state.upload(path.name, data)
            except LocalFileError as error:
                self.path_field.refuse(str(error))
                return
            except ClientError as error:
                self.path_field.refuse(f"{error} {error.next_step}")
                return
            self.remove_class("reading")
            self._end_asking()
            self.say(uploaded_words(upload))
            self.workers.cancel_group(self, "read")  # it may answer later, with less
            await self._read_items()
