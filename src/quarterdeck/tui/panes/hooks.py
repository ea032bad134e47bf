"""The Hooks tab.

The hooks of a replica: their runs, the newest first, and the output of one.

events -> the running hook, followed at its end
logs   -> ended runs; read when the tab is shown, and when another hook has ended
"""

from typing import ClassVar
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.hooks import HookRun, LiveHook, read_runs, said_name
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.blocks import duration_text
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, eager_bindings, keyed
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.pages import OutputPage, SourcePage
from quarterdeck.tui.kit.rows import Row, RowList
from quarterdeck.tui.kit.spans import Line, Span, TextRole
from quarterdeck.tui.kit.text_view import ForwardsToPane, PaneAction, Reader
from quarterdeck.tui.panes.tabs import ReadingTab
from quarterdeck.wire.replicas import WorkspaceStatus

LIVE = "live"
"""The key of the row of the running hook."""
NONE = (
    "No hooks have run.\n\n"
    "Hooks come from its environments (key {page.environments} in the list), and from "
    ".quarterdeck/hooks/warm.sh and start.sh in its repositories."
)


def state_words(state: ReplicaState) -> tuple[str, bool]:
    """Return why the replica does not work now, and whether it failed; empty when it works."""
    running = state.hooks.running
    match state.status:
        case WorkspaceStatus.ERROR:
            reason = state.record.error or state.hooks.failure or "The service gave no reason."
            return f"✗ failed: {reason} · " + keyed("{replica.wake} retry"), True
        case WorkspaceStatus.PREPARING if running is not None:
            return f"◌ preparing: the hook {said_name(running.name)} runs", False
        case WorkspaceStatus.PREPARING:
            return "◌ Preparing: creating the replica and starting its engine", False
        case _:
            return "", False


def live_row(hook: LiveHook) -> Row:
    """Return the row of the running hook."""
    since = f"since {hook.started_at.astimezone():%H:%M:%S}"
    words = (Span(" ● ", TextRole.WORKING), Span(one_line(said_name(hook.name))))
    return Row(LIVE, words, (Span(f"running {since}", TextRole.WORKING),))


def run_row(run: HookRun) -> Row:
    """Return the row of a run that ended."""
    sign = Span(" ✗ ", TextRole.FAILED) if run.failed else Span(" ✓ ", TextRole.DONE)
    words: Line = (sign, Span(f"{run.kind:<6}", TextRole.DIM), Span(one_line(said_name(run.name))))
    code = Span(_ended(run), TextRole.FAILED if run.failed else TextRole.DIM)
    took = "" if run.seconds is None else f"{duration_text(run.seconds):>9}"
    at = f"  {run.executed_at.astimezone():%d %b %H:%M}"
    return Row(run.key, words, (code, Span(f"{took}{at}", TextRole.DIM)))


def _ended(run: HookRun) -> str:
    if run.timed_out:
        return "timed out"
    return f"exit {run.exit_code}"


def run_title(run: HookRun) -> str:
    """Return the title of a run's output."""
    return f"{run.kind} hook {said_name(run.name)}"


def run_facts(run: HookRun) -> str:
    """Return how it ended, for the right of the title."""
    took = "" if run.seconds is None else f"  {duration_text(run.seconds)}"
    return f"{_ended(run)}{took}"


def output_words(run: HookRun) -> str:
    """Return a remark about its output."""
    return f"The first {run.left_out:,} characters were dropped." if run.left_out else ""


def live_words(hook: LiveHook) -> str:
    """Return a remark about the output of the running hook."""
    if hook.cut:
        return "More output than can be shown while it runs; the log has the end."
    if not hook.whole:
        return "Earlier output is in its log once it has ended."
    return ""


MOST_ROWS = 8
"""Runs that are visible at a time: the output has the rest of the pane."""


class HookRunList(RowList[str], ForwardsToPane, HasKeyContext):
    """The runs; the one under the cursor is shown below."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.HOOKS)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.HOOKS


class HookReader(Reader):
    """The output of a hook, or its script."""

    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.HOOK)]

    @property
    def place(self) -> KeyContext:
        return KeyContext.HOOK


class HooksPane(ReadingTab):
    """Runs above, output below."""

    DEFAULT_CSS = """
    HooksPane {
        & #hooks-state { height: auto; max-height: 4; padding: 0 1; color: $text-secondary; display: none; }
        & #hooks-state.failed { color: $text-error; }
        & HookRunList { height: 1; }
        & HookReader { height: 1fr; }
    }
    """

    def __init__(self, app_state: AppState, replica_id: UUID) -> None:
        super().__init__(app_state, replica_id)
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
        yield HookRunList()
        yield HookReader()

    @property
    def place(self) -> KeyContext:
        return KeyContext.HOOKS

    @property
    def list(self) -> HookRunList:
        return self.query_one(HookRunList)

    @property
    def reader(self) -> HookReader:
        return self.query_one(HookReader)

    @property
    def keys_target(self) -> Widget:
        return self.list

    # changes of the store

    def read(self) -> None:
        self._read()

    def show_state(self) -> None:
        state = self._app_state.replicas.get(self.replica_id)
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
        state = self._app_state.replicas.get(self.replica_id)
        if state is None:
            return
        ended = state.hooks.ended
        try:
            runs = await read_runs(self._app_state, self.replica_id, state.hooks)
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
        self.list.empty = keyed(NONE) if self._was_read else ""
        self.list.styles.height = min(MOST_ROWS, len(rows)) or "1fr"  # the hint wraps
        self.list.show_rows(rows, keep=not to_newest)
        self._show_chosen()

    # user actions

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted) -> None:
        event.stop()
        self._show_chosen()

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self.screen.set_focus(self.reader.text)

    @on(PaneAction)
    def _carry_out(self, event: PaneAction) -> None:
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

    def _show_chosen(self) -> None:
        wanted = (self.list.chosen or "", self._script)
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
