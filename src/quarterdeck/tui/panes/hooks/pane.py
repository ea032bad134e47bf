"""The hooks of a replica: their runs, the newest first, and what one printed.

events -> what runs now, followed at its end
logs   -> what ended; read when the tab is looked at, and when another hook has ended
"""

from typing import ClassVar
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.deck import Deck
from quarterdeck.store.hook_runs import HookRun, read_runs, said_name
from quarterdeck.store.hooks import LiveHook
from quarterdeck.tui.actions import Where, eager_bindings
from quarterdeck.tui.panes.hooks.words import (
    LIVE,
    NONE,
    live_row,
    live_words,
    output_words,
    run_facts,
    run_row,
    run_title,
    state_words,
)
from quarterdeck.tui.panes.reading_tab import ReadingTab
from quarterdeck.tui.reading.deeds import Deed, Doer
from quarterdeck.tui.reading.pages import OutputPage, SourcePage
from quarterdeck.tui.reading.reader import Reader
from quarterdeck.tui.reading.row_list import RowList
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys
from quarterdeck.tui.widgets.placed import Placed

MOST_ROWS = 8
"""Runs that are seen at a time: the output has the rest of the pane."""


class RunList(RowList, Doer, Placed):
    """The runs; the one under the cursor is shown below."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.HOOKS)]

    @property
    def place(self) -> Where:
        return Where.HOOKS


class HookReader(Reader):
    """What a hook printed, or its script."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(Where.HOOK)]

    @property
    def place(self) -> Where:
        return Where.HOOK


class HooksPane(ReadingTab):
    """Runs above, output below."""

    DEFAULT_CSS = """
    HooksPane {
        & #hooks-state { height: auto; max-height: 4; padding: 0 1; color: $text-secondary; display: none; }
        & #hooks-state.failed { color: $text-error; }
        & RunList { height: 1; }
        & HookReader { height: 1fr; }
    }
    """

    def __init__(self, deck: Deck, replica_id: UUID) -> None:
        super().__init__(deck, replica_id)
        self._runs: dict[str, HookRun] = {}
        self._was_read = False
        self._ended_when_read = -1
        self._script = False
        self._on_screen: tuple[str, bool] | None = None
        """The run that the reader shows, and whether as its script."""
        self._live_page = OutputPage()
        self._live: LiveHook | None = None
        self._pieces = 0

    def compose(self) -> ComposeResult:
        yield Static(id="hooks-state", markup=False)
        yield RunList()
        yield HookReader()

    @property
    def place(self) -> Where:
        return Where.HOOKS

    @property
    def list(self) -> RunList:
        return self.query_one(RunList)

    @property
    def reader(self) -> HookReader:
        return self.query_one(HookReader)

    @property
    def keys_target(self) -> Widget:
        return self.list

    # what the store tells

    def read(self) -> None:
        self._read()

    def show_state(self) -> None:
        state = self._deck.replicas.get(self.replica_id)
        if state is None or not self.is_shown:
            return
        words, failed = state_words(state)
        line = self.query_one("#hooks-state", Static)
        line.display = bool(words)
        line.set_class(failed, "failed")
        line.update(one_line(words))
        self._follow(state.hooks.running)
        if self._was_read and state.hooks.ended != self._ended_when_read:
            self._read()

    def _follow(self, running: LiveHook | None) -> None:
        if running is not self._live:
            self._live, self._pieces = running, 0
            self._live_page = OutputPage()
            self._show_runs(to_newest=True)
        if running is None or self._pieces == len(running.pieces):
            return
        self._live_page.append("".join(running.pieces[self._pieces :]))
        self._pieces = len(running.pieces)
        if self._on_screen == (LIVE, False):
            self.reader.text.page_grew()
            self.reader.say(live_words(running))

    @work(group="read", exclusive=True)
    async def _read(self) -> None:
        state = self._deck.replicas.get(self.replica_id)
        if state is None:
            return
        ended = state.hooks.ended
        try:
            runs = await read_runs(self._deck, self.replica_id, state.hooks)
        except ClientError as error:
            self.reader.say(f"{error} {error.next_step}")
            return
        newest = ended != self._ended_when_read
        self._was_read, self._ended_when_read = True, ended
        self._runs = {run.key: run for run in runs}
        self._show_runs(to_newest=newest)

    def _show_runs(self, *, to_newest: bool) -> None:
        rows = [live_row(self._live)] if self._live is not None else []
        rows += [run_row(run) for run in self._runs.values()]
        self.list.empty = NONE if self._was_read else ""
        self.list.styles.height = max(1, min(MOST_ROWS, len(rows) or len(NONE.splitlines())))
        self.list.show_rows(rows, keep=not to_newest)
        self._show_chosen()

    # what the person does

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted) -> None:
        event.stop()
        self._show_chosen()

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self.screen.set_focus(self.reader.text)

    @on(Deed)
    def _deed(self, event: Deed) -> None:
        event.stop()
        match event.name:
            case "output":
                self.screen.set_focus(self.reader.text)
            case "runs":
                self.screen.set_focus(self.list)
            case "script":
                self._script = not self._script
                self._show_chosen()
            case _:
                self._read()
        release_keys(self)

    def _show_chosen(self) -> None:
        wanted = (self.list.selected, self._script)
        if wanted == self._on_screen and wanted[0] != LIVE:
            return
        self._on_screen = wanted
        key, script = wanted
        if key == LIVE and self._live is not None:
            self._show_live(self._live)
        elif (run := self._runs.get(key)) is not None:
            self._show_run(run, script=script)
        else:
            self.reader.show_page("", OutputPage())
            self.reader.say("")

    def _show_live(self, hook: LiveHook) -> None:
        title = f"running hook {said_name(hook.name)}"
        if self.reader.text.page is not self._live_page:
            self.reader.show_page(title, self._live_page, end=True)
        self._on_screen = (LIVE, False)
        self.reader.say(live_words(hook))

    def _show_run(self, run: HookRun, *, script: bool) -> None:
        if script:
            self.reader.show_page(f"{run_title(run)}: script", SourcePage(run.script))
        else:
            page = OutputPage(run.output.removesuffix("\n"))
            self.reader.show_page(run_title(run), page, facts=run_facts(run), end=run.failed)
        self.reader.say("" if script else output_words(run))
