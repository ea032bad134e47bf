"""The form of an automation, and the page that shows its new webhook once."""

from collections.abc import Sequence
from typing import ClassVar, cast
from uuid import UUID

from pydantic import BaseModel
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Static

from quarterdeck.client.errors import ClientError, InvalidRequestError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.automation_draft import (
    EVENTS,
    AutomationDraft,
    coming,
    draft_values,
    save_draft,
    webhook_call,
    zone_names,
)
from quarterdeck.store.automation_state import AutomationState
from quarterdeck.store.creation import (
    CreationChoices,
    CreationRequest,
    choices,
    environment_for,
    models_of,
    repository_options,
    usual_agent,
)
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import KeyContext, keyed
from quarterdeck.tui.automations.facts import ON_SUCCESS, PUSH, both_clocks
from quarterdeck.tui.automations.run_screen import RunSteps
from quarterdeck.tui.automations.runs import AutomationListView, RunList
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.forms.kit import FormScreen, ModelForm
from quarterdeck.tui.forms.kit.spec import Field, FieldKind
from quarterdeck.tui.kit.dialogs import Dialog
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.automations import Automation
from quarterdeck.wire.base import utc_now


class WebhookScreen(Dialog[None]):
    """Closed by escape or enter; `y` copies."""

    DEFAULT_CSS = """
    WebhookScreen {
        align: center middle;
        & > Vertical {
            width: 84;
            max-width: 96%;
            height: auto;
            padding: 1 2;
            background: $surface;
            border: round $border;
        }
        & #call { margin: 1 0; color: $text-accent; }
        & .muted { color: $text-muted; }
        & .notice { color: $text-warning; }
        & Horizontal { height: auto; margin-top: 1; align-horizontal: right; }
        & Button { margin-left: 2; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.SHOWN_ONCE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="shown.copy"),
        Binding("escape", "close", "Close", id="shown.close"),
        Binding("left,right", "app.focus_next", "Other button", show=False),
    ]

    def __init__(self, name: str, call: str, notices: Sequence[str] = ()) -> None:
        """`notices` say what keeps calls from reaching the service."""
        super().__init__()
        self._name = name
        self._call = call
        self._notices = notices

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(f"The webhook of {one_line(self._name)}", markup=False)
            yield Static(one_line(self._call), id="call", markup=False)
            yield Static(
                "The token is enough to start a run, unless calls have to be signed. "
                "A POST of JSON is its payload.",
                classes="muted",
                markup=False,
            )
            for notice in self._notices:
                yield Static(one_line(notice), classes="notice", markup=False)
            with Horizontal():
                yield Button(
                    keyed("Copy ({shown.copy})"), id="copy", variant="primary", compact=True
                )
                yield Button(keyed("Close ({shown.close})"), id="close", compact=True)

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#close", Button))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "copy":
            self.action_copy()
        else:
            self.action_close()

    def action_copy(self) -> None:
        copy_text(self, self._call)

    def action_close(self) -> None:
        self.dismiss(None)


_EVENTS = [(event.replace("_", " ").replace(".", " "), event) for event in EVENTS]
AGENT_FIELD = "Built-in, runs shell blocks only"

FIELDS: Sequence[Field] = (
    Field("name"),
    Field("environment_id", "Environment", "Environment of its replicas.", kind=FieldKind.CHOICE),
    Field("agent_provider", "Agent", kind=FieldKind.CHOICE, none=AGENT_FIELD),
    Field("model", placeholder="Agent default"),
    Field("prompt", "Prompt", kind=FieldKind.LINES, rows=5, trimmed=False),
    Field(
        "schedule",
        help="minute hour day month weekday; 0 9 * * 1-5 is at nine on working days.",
        placeholder="cron, e.g. 0 9 * * 1-5 (optional)",
    ),
    Field("timezone", "Time zone", "Time zone of the schedule, such as Europe/Paris."),
    Field("webhook", help="URL with a secret token; anyone who has it can start a run."),
    Field("events", "On events", "Of pull requests and merge requests.", options=_EVENTS),
    Field(
        "repository_ids",
        "Repositories",
        "Empty: all bound to the environment.",
        kind=FieldKind.CHOICES,
    ),
    Field(
        "group_pr_events",
        "Group",
        "Reuse the replica for later events of the same pull request.",
    ),
    Field(
        "trust",
        "Trust",
        "Authors whose pull requests from forks run without approval.",
        options=(
            ("members of the repository", "members"),
            ("members, and authors approved before", "approved"),
            ("everybody", "all"),
        ),
        folded=True,
    ),
    Field(
        "on_new_event",
        "New push",
        "Effect of a new push on the running run of a pull request.",
        options=(("cancels the earlier run", "cancel"), ("waits for the earlier run", "queue")),
        folded=True,
    ),
    Field("plan_mode", "Plan mode", "Propose a plan before changing anything.", folded=True),
    Field("goal_mode", "Goal mode", none="Agent default", folded=True),
    Field("fast_mode", "Fast mode", none="Agent default", folded=True),
    Field("thinking_level", "Thinking", none="Agent default", folded=True),
    Field("description", folded=True),
    Field(
        "debounce_seconds",
        "Debounce",
        "Debounce: start after this many seconds without another event.",
        folded=True,
    ),
    Field(
        "debounce_max_seconds",
        "Debounce max",
        "Start after this many seconds at the latest.",
        placeholder="ten times the debounce",
        folded=True,
    ),
    Field(
        "max_minutes",
        "Max time",
        "Minutes after which a run is stopped.",
        placeholder="no limit",
        folded=True,
    ),
    Field("concurrency", "At once", "More runs wait.", placeholder="no limit", folded=True),
    Field("retention_days", "Keep runs", "Days after which ended runs are removed.", folded=True),
    Field(
        "webhook_secret",
        "Webhook secret",
        "Calls of the webhook have to be signed with it. Left empty, it stays as it is.",
        secret=True,
        folded=True,
    ),
    Field(
        "skip_while_running",
        "No overlap",
        "Skip scheduled runs while one is active.",
        folded=True,
    ),
    Field(
        "excluded_actors",
        "Events of these people start nothing",
        rows=3,
        folded=True,
    ),
    Field("check", help="A run of an event opens a check, which the agent reports.", folded=True),
    Field("report", "Verdict", "Also ask runs without a pull request for one.", folded=True),
    Field(
        "base",
        "Base",
        "Branch, tag or commit that runs start from.",
        placeholder="default branch",
        folded=True,
    ),
    Field(
        "on_success",
        "On success",
        "Action on the commits of a successful run; uses your credentials.",
        kind=FieldKind.CHOICE,
        options=tuple((text, value) for value, text in ON_SUCCESS.items()),
        none="keep them in the replica",
        folded=True,
    ),
    Field(
        "push",
        "Push",
        "Branches that runs may push to; uses your credentials.",
        kind=FieldKind.CHOICE,
        options=tuple((text, value) for value, text in PUSH.items()),
        none="Environment default",
        folded=True,
    ),
    Field("workspace_lifecycle_policy", "When done", folded=True),
    Field("workspace_size", "Size", none="Default", folded=True),
    Field(
        "workspace_auto_stop_minutes",
        "Stops after",
        "Sleep after this many idle minutes.",
        placeholder="minutes",
        folded=True,
    ),
    Field("enabled", help="Off: its schedule and events start nothing.", folded=True),
)
SCOPE = Field(
    "scope",
    help="Fixed once created.",
    options=(("organization", "org"), ("personal", "user")),
    folded=True,
)


SCHEDULE, ZONE, AGENT = "schedule", "timezone", "agent_provider"
ENVIRONMENT = "environment_id"
HERE = UUID(int=0)
"""Instead of an environment: that of the current repository."""


class AutomationForm(FormScreen[Automation]):
    """Dismissed with the automation as the service returns it, or with None."""

    def __init__(self, app_state: AppState, record: Automation | None = None) -> None:
        """Without a record a new one is created, by default for the current repository."""
        self._app_state = app_state
        self._is_new = record is None
        fields = FIELDS if record is not None else (*FIELDS, SCOPE)
        start = draft_values(record) if record is not None else {}
        if record is None and app_state.directory is not None:
            start[ENVIRONMENT] = HERE

        async def save(body: BaseModel) -> Automation:
            draft = await self._with_environment(cast("AutomationDraft", body))
            commands = app_state.automations.commands
            return await save_draft(app_state.client, commands, draft, record)

        title = f"Edit {record.name}" if record is not None else "New automation"
        verb = "Save" if record is not None else "Create"
        super().__init__(title, ModelForm(AutomationDraft, fields, start), save, verb=verb)

    def on_mount(self) -> None:
        if str(self.form.value(ENVIRONMENT)) == str(HERE):
            self.form.offer(ENVIRONMENT, self._here())  # the others are being read
        self._suggest(ZONE, zone_names())
        self._preview()
        self._read_choices()
        self._read_models()

    async def _with_environment(self, draft: AutomationDraft) -> AutomationDraft:
        """Return the draft with the environment of the current repository, created if there is none.

        Raises:
            ClientError: refused or unreachable.
        """
        if draft.environment_id != HERE:
            return draft
        request = CreationRequest(repository_url=str(self._app_state.directory))
        try:
            found, _ = await environment_for(self._app_state.client, request)
        except InvalidRequestError as error:
            error.details = f"{ENVIRONMENT}: {error.details or error}"
            raise
        return draft.model_copy(update={ENVIRONMENT: found})

    # choices

    @work(exclusive=True, group="choices")
    async def _read_choices(self) -> None:
        try:
            found = await choices(self._app_state.client)
        except ClientError as error:
            message = f"Could not load options: {error} {error.next_step}"
            self.form.say(ENVIRONMENT, message)
            return
        self.call_after_refresh(self._offer, found)  # a field may not have processed its value yet

    def _here(self) -> list[tuple[str, str]]:
        """Return the choice of the current repository, if there is one."""
        directory = self._app_state.directory
        if directory is None:
            return []
        return [(f"{name_line(directory.name)} (the repository here)", str(HERE))]

    def _offer(self, found: CreationChoices) -> None:
        self.form.say(ENVIRONMENT, "")
        environments = [(entry.name, str(entry.id)) for entry in found.environments]
        self.form.offer(ENVIRONMENT, [*self._here(), *environments])
        repositories = repository_options(found.repositories)
        self.form.offer("repository_ids", repositories)
        if not repositories:
            self.form.say("repository_ids", "No repository is connected.")
        self.form.offer(AGENT, [(_words(agent), agent.id) for agent in found.agents])
        if self._is_new and (usual := usual_agent(found.agents)) is not None:
            self.form.begin(AGENT, usual)

    @work(exclusive=True, group="models")
    async def _read_models(self) -> None:
        agent = self.form.value(AGENT)
        if agent is None:
            return
        try:
            offered = await models_of(self._app_state.client, agent)
        except ClientError:
            return  # nothing is offered then; anything may be typed
        self._suggest("model", offered)

    def _suggest(self, path: str, offered: Sequence[str]) -> None:
        field = self.form.row(path).control
        if isinstance(field, Input):
            field.suggester = SuggestFromList(offered, case_sensitive=False)

    # preview of the schedule

    @on(ModelForm.Changed)
    def _changed(self, event: ModelForm.Changed) -> None:
        if event.path in {SCHEDULE, ZONE}:
            self._preview()
        elif event.path == AGENT:
            self._read_models()

    def _preview(self) -> None:
        schedule, zone = self.form.value(SCHEDULE), self.form.value(ZONE)
        found = coming(schedule, zone or "", utc_now()) if schedule else None
        problem = found.problem if found else None
        for path in (SCHEDULE, ZONE):
            mine = found is not None and found.field == path
            self.form.row(path).refuse(problem or "" if mine else "")
        moments = found.moments if found else ()
        self.form.say(SCHEDULE, "\n".join(both_clocks(moment, zone) for moment in moments))


def _words(agent: Agent) -> str:
    if agent.available:
        return agent.name
    return f"{agent.name}: {agent.reason or 'not available'}"


NO_WEBHOOK = "No webhook. Edit it ({automation.edit}) to add one."


class StepsScreen(RunSteps):
    """The base of the automations' screen."""

    revealed: UUID | None = None
    """The automation whose token is shown."""

    @property
    def chosen(self) -> AutomationState | None:
        """The automation that actions apply to."""
        raise NotImplementedError

    def _show(self) -> None:
        raise NotImplementedError

    def _show_chosen(self) -> None:
        raise NotImplementedError

    @property
    def listing(self) -> AutomationListView:
        """The list of automations."""
        raise NotImplementedError

    @property
    def runs(self) -> RunList:
        """The list of runs."""
        raise NotImplementedError

    # creating, editing

    def action_new(self) -> None:
        self._ask(None)

    def action_edit(self) -> None:
        if (state := self.chosen) is not None:
            self._ask(state.record)

    @work
    async def _ask(self, record: Automation | None) -> None:

        saved = await self.app.push_screen_wait(AutomationForm(self._app_state, record))
        if saved is None:
            return
        self._show()
        self.listing.select(saved.id)
        call = webhook_call(saved, self._app_state.client.connection.endpoint)
        had_webhook = record is not None and record.webhook_token is not None
        if call is not None and not had_webhook:
            self._show_call(saved, call)

    def _show_call(self, record: Automation, call: str) -> None:
        self.app.push_screen(WebhookScreen(record.name, call, record.notices))

    # turning on and off, deleting

    def action_switch(self) -> None:
        state = self.chosen
        if state is None:
            return
        on = not state.record.enabled
        self.carry_out(
            "Switch on" if on else "Switch off",
            self._app_state.automations.commands.switch(state.id, on),
        )

    def action_delete(self) -> None:
        if (state := self.chosen) is not None:
            self._ask_to_delete(state)

    @work
    async def _ask_to_delete(self, state: AutomationState) -> None:
        from quarterdeck.tui.kit.dialogs import ConfirmScreen

        runs = f" with its {state.history.total} runs" if state.history else " with all its runs"
        sure = await self.app.push_screen_wait(
            ConfirmScreen(
                f"Delete {name_line(state.name)}?",
                f"Deletes the automation{runs}. Their replicas are kept.",
                "Delete",
            )
        )
        if sure:
            self.carry_out("Delete", self._app_state.automations.commands.delete(state.id))

    # the webhook

    def action_reveal(self) -> None:
        state = self.chosen
        if state is None:
            return
        if state.record.webhook_token is None:
            self.tell("information", name_line(state.name), keyed(NO_WEBHOOK))
            return
        self.revealed = None if self.revealed == state.id else state.id
        self._show_chosen()

    def action_copy_webhook(self) -> None:
        state = self.chosen
        if state is None:
            return
        call = webhook_call(state.record, self._app_state.client.connection.endpoint)
        if call is None:
            self.tell("information", name_line(state.name), keyed(NO_WEBHOOK))
        else:
            copy_text(self, call)

    def action_rotate_webhook(self) -> None:
        state = self.chosen
        if state is None:
            return
        if state.record.webhook_token is None:
            self.tell("information", name_line(state.name), keyed(NO_WEBHOOK))
            return
        rotate = self._app_state.automations.commands.rotate_webhook

        async def show() -> None:
            rotated = await rotate(state.id)
            call = webhook_call(rotated, self._app_state.client.connection.endpoint)
            if call is not None:
                self._show_call(rotated, call)

        question = f"Give the webhook of {name_line(state.name)} a new token?"
        self._ask_first(question, "Calls with the present one start nothing then.", "Rotate", show)

    # runs

    def action_open_run(self) -> None:
        run = self.chosen_run
        if run is not None:
            self._open_run(run.automation_id, run.id)

    @work
    async def _open_run(self, automation_id: UUID, run_id: UUID) -> None:
        from quarterdeck.tui.automations.run_screen import RunScreen

        to = await self.app.push_screen_wait(RunScreen(self._app_state, automation_id, run_id))
        if to is not None:
            self.dismiss(to)

    def action_run(self) -> None:
        if (state := self.chosen) is not None:
            self._ask_to_run(state)

    @work
    async def _ask_to_run(self, state: AutomationState) -> None:
        from quarterdeck.tui.automations.run_screen import RunDialog

        started = await self.app.push_screen_wait(RunDialog(self._app_state, state))
        if started is not None:
            self.runs.action_edge(0)  # the run that was started is the newest
        if started is not None and started.workspace_id is None:
            self.tell(
                "information",
                name_line(state.name),
                "The run waits: as many runs or replicas are active as are allowed.",
            )
