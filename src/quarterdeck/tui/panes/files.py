"""The Files tab.

The files of a replica.

    typing -> search (older ones are canceled) -> found -> enter -> file
    replica woken, turn ended -> searched and read again

Side by side where there is room, else one of the two at a time.
"""

import asyncio
from itertools import pairwise
from typing import Any, ClassVar, cast
from uuid import UUID

from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.client.errors import ClientError, NotActiveError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.files import FileFinder, OpenFile, content_words, read_file, size_words
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.text import clean, name_line, one_line
from quarterdeck.tui.actions import KeyContext, bindings, eager_bindings, keyed
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.kit.fields import LineInput
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.pages import OutputPage, SourcePage
from quarterdeck.tui.kit.picture_reader import PictureReader
from quarterdeck.tui.kit.rows import Row, RowList
from quarterdeck.tui.kit.spans import Emphasis, Line, Span, TextRole
from quarterdeck.tui.kit.text_view import ForwardsToPane, PaneAction
from quarterdeck.tui.outside import OutsideError, editor, look_at, pager
from quarterdeck.tui.panes.tabs import ReadingTab
from quarterdeck.tui.screens.picture import view_image
from quarterdeck.tui.textual_ext.type_ahead import KeyHold, hold_keys
from quarterdeck.wire.files import FileStatus, FoundFile
from quarterdeck.wire.replicas import WorkspaceStatus

_SIGNS = {
    FileStatus.CHANGED: Span("M ", TextRole.WARNING),
    FileStatus.UNTRACKED: Span("+ ", TextRole.ADDED),
}
_NO_SIGN = Span("  ")


def key_of(file: FoundFile) -> str:
    """Return a unique key for a file of a replica."""
    return f"{file.repo_name}\0{file.path}"


def row_of(file: FoundFile, words: str, *, several: bool) -> Row:
    """Return the row of a file; with `several` repositories it names the file's."""
    path = name_line(file.display_path if several else file.path)
    sign = next((sign for status, sign in _SIGNS.items() if status == file.status), _NO_SIGN)
    return Row(key_of(file), (Span(" "), sign, *marked_path(path, words)))


def marked_path(path: str, words: str) -> Line:
    """Return a path: directories dim, the name plain, matches bold."""
    name_at = path.rfind("/") + 1
    hits = matched(path, words)
    # Where the style may change: around the matches, and before the name.
    edges = sorted({0, name_at, len(path), *hits, *(at + 1 for at in hits)})
    return tuple(
        Span(path[start:end], TextRole.NAME, Emphasis.BOLD)
        if start in hits
        else Span(path[start:end], TextRole.TEXT if start >= name_at else TextRole.DIM)
        for start, end in pairwise(edges)
    )


def matched(path: str, words: str) -> set[int]:
    """Return the matches of the words in a path: each as a whole, last place first, else letter by letter."""
    lowered = path.lower()
    hits: set[int] = set()
    if len(lowered) != len(path):
        return hits
    for word in words.lower().split():
        at = lowered.rfind(word)
        hits.update(range(at, at + len(word)) if at >= 0 else _strewn(lowered, word))
    return hits


def _strewn(text: str, word: str) -> list[int]:
    places: list[int] = []
    at = -1
    for character in word:
        at = text.find(character, at + 1)
        if at < 0:
            return []
        places.append(at)
    return places


SEARCHING = "searching …"


def found_words(finder: FileFinder) -> str:
    """Return how many were found, and how reliable that is."""
    if finder.query is None:
        return SEARCHING
    if finder.unsupported:
        return "the replica's engine is too old to list its files"
    count = len(finder.files)
    parts = [f"{count:,}{'+' if finder.has_more else ''} file{'' if count == 1 else 's'}"]
    if finder.refreshing:
        parts.append("refreshing …")
    elif finder.stale:
        parts.append(f"as of {_moment(finder)}, may have changed")
    if finder.truncated:
        parts.append("not all files are listed")
    return " · ".join(parts)


def _moment(finder: FileFinder) -> str:
    if finder.indexed_at is None:
        return "some time ago"
    return f"{finder.indexed_at.astimezone():%d %b %H:%M}"


def empty_words(finder: FileFinder) -> str:
    """Return the text shown when no file was found."""
    if finder.query is None:
        return ""
    return "No file matches." if finder.query else "No files in the repositories."


def unreadable_words(state: ReplicaState | None) -> str:
    """Return why no file can be read at the moment; empty when it should be possible."""
    match state.status if state else None:
        case None | WorkspaceStatus.ACTIVE:
            return ""
        case WorkspaceStatus.PREPARING:
            return "Preparing: its files are available when it has started."
        case WorkspaceStatus.ERROR:
            return keyed("Failed. {replica.wake} retries; then its files can be read.")
        case status:
            return f"{status.capitalize()}: " + keyed(
                "{replica.wake} wakes it; then its files can be read."
            )


class FinderField(LineInput, ForwardsToPane, HasKeyContext):
    """Every character searches."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.FINDER)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.FINDER


class FoundList(RowList[str], ForwardsToPane, HasKeyContext):
    """The results; here letters are keys."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.FOUND)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.FOUND


class Finder(Vertical):
    """Shows a `FileFinder`; the pane carries out its requests."""

    DEFAULT_CSS = """
    Finder {
        & FoundList { height: 1fr; }
        & #found-words { height: 1; padding: 0 1; color: $text-muted; }
        & #found-words.trouble { color: $text-error; }
    }
    """

    def __init__(self, finder: FileFinder) -> None:
        super().__init__()
        self._finder = finder
        self._by_key: dict[str, FoundFile] = {}
        self._shown = ""
        self._problem = ""

    def compose(self) -> ComposeResult:
        yield FinderField(placeholder="find a file by its name or path")
        yield FoundList()
        yield Static(found_words(self._finder), id="found-words", markup=False)

    @property
    def field(self) -> FinderField:
        return self.query_one(FinderField)

    @property
    def found(self) -> FoundList:
        return self.query_one(FoundList)

    @property
    def chosen(self) -> FoundFile | None:
        """The file under the cursor."""
        return self._by_key.get(self.found.chosen or "")

    def show_found(self) -> None:
        """Show the results so far; another search starts at its best match."""
        files, query = self._finder.files, self._finder.query or ""
        several = len({file.repo_name for file in files}) > 1
        self._by_key = {key_of(file): file for file in files}
        rows = [row_of(file, query, several=several) for file in files]
        self.found.empty = empty_words(self._finder)
        self.found.show_rows(rows, keep=query == self._shown)
        self._shown = query
        self.say(self._problem)

    def say(self, problem: str) -> None:
        """Show an error, until the next user action, else the results."""
        self._problem = problem
        line = self.query_one("#found-words", Static)
        line.set_class(bool(problem), "trouble")
        line.update(one_line(problem) if problem else found_words(self._finder))


NO_COLORS = "Too large for colors."


class FileReader(PictureReader):
    """Shows an `OpenFile`. It can be read at once; its colors come shortly after."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.FILE)]

    def __init__(self) -> None:
        super().__init__()
        self.file: OpenFile | None = None

    @property
    def place(self) -> KeyContext:
        return KeyContext.FILE

    async def show_file(self, file: OpenFile) -> None:
        """Show a file; one that was read again keeps its scroll position."""
        before, self.file = self.file, file
        same = before is not None and (before.repo_name, before.path) == (file.repo_name, file.path)
        if same and before == file:
            return
        facts = size_words(file.size)
        if file.is_image:
            await self.show_picture(file.path, file.data, facts=facts, instead=_instead(file))
            return
        if file.text is None:
            self.show_page(file.path, OutputPage(_instead(file)), facts=facts)
            self.say("")
            return
        page = SourcePage(file.text)
        self.show_page(file.path, page, facts=facts, keep=same)
        known = [content_words(file), "" if self.color(file.name, page) else NO_COLORS]
        self.say(" ".join(words for words in known if words))


def _instead(file: OpenFile) -> str:
    begins = " ".join(f"{byte:02x}" for byte in file.data[:16])
    return f"{content_words(file)}\n\nIt begins with: {begins}\n\ne opens a copy in $EDITOR."


BESIDE = 100
"""Columns from which on finder and file are side by side."""
REST = 0.08
"""Seconds without typing before a search is sent."""


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

    def __init__(self, app_state: AppState, replica_id: UUID) -> None:
        super().__init__(app_state, replica_id)
        self._files = FileFinder(app_state, replica_id)
        self._awaited: KeyHold | None = None
        """Enter came before the result for the typed text: keys wait for it."""

    def compose(self) -> ComposeResult:
        yield Finder(self._files)
        yield FileReader()

    @property
    def place(self) -> KeyContext:
        return KeyContext.FOUND

    @property
    def finder(self) -> Finder:
        return self.query_one(Finder)

    @property
    def reader(self) -> FileReader:
        return self.query_one(FileReader)

    @property
    def keys_target(self) -> Widget:
        return self.reader.front if self.has_class("reading") else self.finder.field

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "beside")

    # when it searches

    def read(self) -> None:
        self._search()

    def on_unmount(self) -> None:
        self._await_answer(None)

    def hidden(self) -> None:
        super().hidden()
        self._await_answer(None)
        self.workers.cancel_group(self, "search")

    def show_state(self) -> None:
        if not self.moved_on():
            return
        self.finder.say("")
        self._search()
        state, file = self._app_state.replicas.get(self.replica_id), self.reader.file
        if state is not None and state.active and not state.works and file:
            self._open(file.repo_name, file.path, again=True)

    @on(FinderField.Changed)
    def _field_changed(self, event: FinderField.Changed) -> None:
        event.stop()
        self.finder.say("")
        self._search(rest=REST)

    @work(group="search", exclusive=True)
    async def _search(self, *, rest: float = 0.0, refresh: bool = False) -> None:
        """Search for the typed text; the newest search cancels the previous one."""
        await asyncio.sleep(rest)
        finder = self.finder
        try:
            if await self._files.search(self._typed, refresh=refresh):
                finder.show_found()
                self._open_if_awaited()
            await self._files.settle(finder.show_found)
        except ClientError as error:
            finder.say(f"{error} {error.next_step}")
            self._await_answer(None)

    @property
    def _typed(self) -> str:
        return self.finder.field.value.strip()

    def _await_answer(self, hold: KeyHold | None) -> None:
        if self._awaited is not None:
            self._awaited.release()
        self._awaited = hold

    def _open_if_awaited(self) -> None:
        if self._awaited is not None:
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

    # user actions

    @on(RowList.Chosen)
    def _row_chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self._open_chosen()

    @on(PaneAction)
    def _carry_out(self, event: PaneAction) -> None:
        event.stop()
        found = self.finder.found
        self.finder.say("")
        match event.name:
            case "open":
                self._open_chosen()
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
        """Repository, path, and the path as an agent uses it, of the file that keys apply to."""
        file = (self._reads and self.reader.file) or self.finder.chosen
        if file is None:
            return None
        state = self._app_state.replicas.get(self.replica_id)
        # An agent starts in the only repository, else above all of them.
        only = state is not None and len(state.record.repository_statuses) == 1
        return file.repo_name, file.path, file.path if only else f"{file.repo_name}/{file.path}"

    def _with_file(self, action: str) -> None:
        if (meant := self._meant) is None:
            return
        repo_name, path, agent_path = meant
        match action:
            case "copy-path":
                copy_text(self, one_line(agent_path))
            case "mention":
                self.post_message(self.Mentioned(f"@{one_line(agent_path)} "))
            case _:
                self._open(repo_name, path, action=action)

    def _open_chosen(self) -> None:
        """Open the best match of the typed text, as soon as it is known."""
        if self._files.query != self._typed:
            self._await_answer(hold_keys(self, "Searching"))
            return
        if (found := self.finder.chosen) is not None:
            self._open(found.repo_name, found.path)
        self._await_answer(None)

    @work(group="open", exclusive=True)
    async def _open(
        self, repo_name: str, path: str, *, again: bool = False, action: str = "read"
    ) -> None:
        if again:
            await self._read_file(repo_name, path, again=True, action=action)
        else:
            with hold_keys(self, "Opening the file"):
                await self._read_file(repo_name, path, again=False, action=action)

    async def _read_file(self, repo_name: str, path: str, *, again: bool, action: str) -> None:
        try:
            file = await read_file(self._app_state, self.replica_id, repo_name, path)
        except ClientError as error:
            self._not_read(path, error)
        else:
            await self._take(file, again=again, action=action)

    async def _take(self, file: OpenFile, *, again: bool, action: str) -> None:
        if action != "read":
            await self._outside(action, file)
            return
        self.add_class("opened")
        await self.reader.show_file(file)
        if not again:
            self.add_class("reading")
            self.screen.set_focus(self.reader.front)

    def _not_read(self, path: str, error: ClientError) -> None:
        words = unreadable_words(self._app_state.replicas.get(self.replica_id))
        if not (isinstance(error, NotActiveError) and words):
            words = f"{path}: {error} {error.next_step}"
        (self.reader if self._reads else self.finder).say(words)

    async def _outside(self, action: str, file: OpenFile) -> None:
        app, problem = cast("App[Any]", self.app), ""
        try:
            if action == "view":
                problem = await view_image(self, self._app_state, file.data, file.is_image)
            elif action == "edit":
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
