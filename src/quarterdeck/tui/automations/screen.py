"""The automations: the list, and next to it triggers, coming runs, settings and runs of one.

    AppState.changed -> once per refresh -> list, facts, runs

Below 60 columns only the side with the focus is shown.
"""

from dataclasses import replace
from typing import ClassVar
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from quarterdeck.client.errors import ClientError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.automation_state import AutomationState
from quarterdeck.store.automations import AutomationStore
from quarterdeck.store.creation import choices
from quarterdeck.store.signals import AutomationsChanged, Change, ListChanged
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, bindings, keyed
from quarterdeck.tui.automations.facts import FactsView, NameLookup, facts_of
from quarterdeck.tui.automations.form import StepsScreen
from quarterdeck.tui.automations.runs import (
    AutomationListView,
    RunList,
    row_of,
    run_row,
    skipped_row,
)
from quarterdeck.tui.kit.rows import RowList
from quarterdeck.wire.automation_runs import Execution
from quarterdeck.wire.base import utc_now

WELCOME = (
    "No automations yet.\nPress {automation.new} to create one:\nan agent that runs on\na schedule, a webhook\n"
    "or a pull request."
)
READING = "Reading …"
RESTING = 0.12
"""Seconds that the cursor rests before the runs are read."""
AHEAD = 5
"""Rows before the end of the runs at which the next page is read."""


class AutomationsScreen(StepsScreen):
    """List, facts and runs."""

    DEFAULT_CSS = """
    AutomationsScreen {
        & #automations-body { height: 1fr; }
        & #automations-side { width: 32; border-right: solid $panel-lighten-2; }
        & #automations-main { width: 1fr; }
        & #facts { height: 3fr; }
        & #runs { height: 2fr; }
        & #runs-title { height: 1; background: $boost; padding: 0 1; text-style: bold; }
        & #automations-problem { height: auto; max-height: 3; color: $text-error; padding: 0 1; }
        &.-wide #automations-side { width: 44; }
        &.-narrow #automations-side { width: 1fr; border-right: none; }
        &.-narrow #automations-main { display: none; }
        &.-narrow.in-pane #automations-side { display: none; }
        &.-narrow.in-pane #automations-main { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.AUTOMATIONS)]
    AUTO_FOCUS = "AutomationListView"
    home = KeyContext.AUTOMATIONS

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._names = NameLookup()
        self._unnamed: set[UUID] = set()
        """Ids whose names were requested; one without a name is not requested again."""
        self._rest: Timer | None = None
        self._runs_of: UUID | None = None
        """The automation whose runs are shown."""
        self._showing = False
        self._runs_problem: str | None = None

    def body(self) -> ComposeResult:
        yield Static(id="automations-problem", markup=False)
        with Horizontal(id="automations-body"):
            with Vertical(id="automations-side"):
                yield AutomationListView(id="automations-list")
            with Vertical(id="automations-main"):
                yield FactsView(id="facts")
                yield Static("Runs", id="runs-title", markup=False)
                yield RunList(id="runs")

    def on_mount(self) -> None:
        self._show()
        self._read_names()
        self._read_list_if_needed()

    # what the store has

    @property
    def store(self) -> AutomationStore:
        return self._app_state.automations

    @property
    def listing(self) -> AutomationListView:
        return self.query_one(AutomationListView)

    @property
    def runs(self) -> RunList:
        return self.query_one(RunList)

    @property
    def chosen(self) -> AutomationState | None:
        selected = self.listing.chosen
        return self.store.states.get(selected) if selected else None

    @property
    def chosen_run(self) -> Execution | None:
        state, selected = self.chosen, self.runs.chosen
        history = state.history if state else None
        return history.find(selected) if history and selected else None

    def take(self, change: Change) -> None:
        if isinstance(change, AutomationsChanged | ListChanged) and not self._showing:
            self._showing = True
            self.call_after_refresh(self._show)

    # reading on demand

    def _read_list_if_needed(self) -> None:
        store = self.store
        if not (store.live and store.listed) or store.problem is not None:
            self._read_list()

    @work(exclusive=True, group="list")
    async def _read_list(self) -> None:
        try:
            await self.store.refresh()
        except ClientError:
            self._show()  # the store reports what is wrong

    @work(exclusive=True, group="names")
    async def _read_names(self) -> None:
        try:
            client = self._app_state.client
            self._names = replace(self._names, endpoint=client.connection.endpoint)
            found = await choices(client)
        except ClientError:
            return  # ids are shown then
        self._names = NameLookup(
            {entry.id: entry.name for entry in found.environments},
            {entry.id: entry.name for entry in found.repositories},
            client.connection.endpoint,
        )
        self._show()

    def _name_environment_of(self, state: AutomationState) -> None:
        """Read names again when an automation has an environment created since."""
        known = {*self._names.environments, *self._unnamed}
        if state.record.environment_id not in known:
            self._unnamed.add(state.record.environment_id)
            self._read_names()

    @work(exclusive=True, group="runs")
    async def _read_runs(self) -> None:
        state = self.chosen
        if state is None or state.history is not None:
            return
        try:
            await self.store.commands.open_runs(state.id)
        except ClientError as error:
            self._runs_problem = f"The runs could not be read: {error} " + keyed(
                "{app.reconnect} to retry."
            )
        else:
            self._runs_problem = None
        self._show()

    @work(exclusive=True, group="more")
    async def _read_more(self, automation_id: UUID) -> None:
        try:
            await self.store.commands.more_runs(automation_id)
        except ClientError as error:
            self.tell("error", "More runs could not be read", f"{error} {error.next_step}")

    def action_reconnect(self) -> None:
        super().action_reconnect()
        self._read_names()
        self._read_list_if_needed()
        self._read_runs()

    # showing

    def _show(self) -> None:
        self._showing = False
        if not self.is_attached:
            return
        now = utc_now()
        problem = self.query_one("#automations-problem", Static)
        problem.display = self.store.problem is not None
        problem.update(one_line(f"{self.store.problem} {keyed('{app.reconnect}')} to retry."))
        waiting = "" if self.store.problem else READING
        self.listing.empty = keyed(WELCOME) if self.store.listed else waiting
        self.listing.show_rows([row_of(state, now) for state in self.store.ordered()])
        self._show_chosen()

    def _show_chosen(self) -> None:
        state, now = self.chosen, utc_now()
        facts = self.query_one(FactsView)
        if state is None:
            facts.show(())
            self._show_runs(())
            return
        self._name_environment_of(state)
        shown = self.revealed == state.id
        facts.show(facts_of(state, self._names, now, revealed=shown))
        self._show_runs(state.history.runs if state.history else ())
        if state.history is None and self._runs_problem is None:
            self._read_runs_soon()

    def _read_runs_soon(self) -> None:
        """Read the runs once the cursor rests. Each wait has its own one-shot timer."""
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(RESTING, self._read_runs)

    def _show_runs(self, found: "tuple[()] | list[Execution]") -> None:
        state, now = self.chosen, utc_now()
        history = state.history if state else None
        read = history is not None and history.pages > 0
        self.runs.empty = self._runs_problem or ("No runs yet." if read else READING)
        if state is None:
            self.runs.empty = ""
        rows = [(run.triggered_at, run_row(run, self.replica_of(run), now)) for run in found]
        for skipped in history.skipped if history else ():
            rows.append((skipped.last_at, skipped_row(skipped, now)))
        rows.sort(key=lambda row: row[0], reverse=True)
        if self._runs_of != (state and state.id):
            self._runs_of = state and state.id
            self.runs.action_edge(0)
        self.runs.show_rows([row for _, row in rows])
        self.show_keys()
        heading = f"Runs  {len(found)} of {history.total}" if history and history.more else "Runs"
        title = self.query_one("#runs-title", Static)
        title.display = state is not None
        title.update(heading)

    @on(RowList.Highlighted, "#automations-list")
    def _moved(self) -> None:
        self._runs_problem = None
        self.revealed = None
        self._show_chosen()

    @on(RowList.Highlighted, "#runs")
    def _run_moved(self) -> None:
        self.show_keys()
        state = self.chosen
        history = state.history if state else None
        if state is None or history is None or not history.more:
            return
        if self.runs.cursor + AHEAD >= len(history.runs):
            self._read_more(state.id)

    # moving

    def watch_focused(self, focused: Widget | None) -> None:
        super().watch_focused(focused)
        if focused is not None:
            inside = not isinstance(focused, AutomationListView)
            self.set_class(inside, "in-pane", update=self.has_class("-narrow"))

    @on(RowList.Chosen, "#automations-list")
    def action_to_runs(self) -> None:
        if self.chosen is not None:
            self.set_focus(self.runs)

    def action_to_automations(self) -> None:
        self.set_focus(self.listing)

    def action_next_part(self) -> None:
        self._go(1)

    def action_part_before(self) -> None:
        self._go(-1)

    def _go(self, step: int) -> None:
        parts: list[Widget] = [self.listing]
        if self.chosen is not None:
            parts += [self.query_one(FactsView), self.runs]
        here = parts.index(self.focused) if self.focused in parts else 0
        self.set_focus(parts[(here + step) % len(parts)])
