"""The dialogs that create a replica: a new one, or a fork."""

from collections.abc import Sequence
from typing import ClassVar, cast
from uuid import UUID

from pydantic import BaseModel
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Label, Select, Static, TextArea

from quarterdeck.client.errors import ClientError, LinkError
from quarterdeck.store.app_state import AppState
from quarterdeck.store.commands import Commands
from quarterdeck.store.creation import (
    CreationChoices,
    CreationRequest,
    choices,
    create,
    models_of,
    usual_agent,
)
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import Change, ConnectionChanged
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import KeyContext, bindings, keyed
from quarterdeck.tui.forms.create_fields import (
    FIELDS,
    FORM,
    BaseField,
    MessageField,
    More,
    Typed,
    WrongBaseError,
    check_message,
    check_name,
    in_full,
    more_form,
    place_error,
    pull_request_at,
    unused_repositories,
    with_more,
)
from quarterdeck.tui.forms.kit import Field, FormScreen, ModelForm, refusal_of, settled
from quarterdeck.tui.forms.kit.spec import FieldKind
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.host_services import (
    Attachment,
    FileRead,
    ask_for_file,
    attached_words,
    images_among,
)
from quarterdeck.tui.kit.dialogs import Dialog, WrongFieldError
from quarterdeck.wire.agents import BUILTIN, Agent
from quarterdeck.wire.replicas import ForkReplica, ReplicaDetail

STYLE = """
CreateScreen {
    align: center middle;
    & > VerticalScroll {
        width: 98%;
        height: auto;
        max-height: 90%;
        padding: 0 1;
        background: $surface;
        border: round $border;
    }
    & Label { width: 14; color: $text-muted; }
    & .row, & BaseField { height: auto; }
    & Input, & Select { width: 1fr; }
    & #message { height: auto; min-height: 5; max-height: 50vh; }
    & TextArea { border: round $panel-lighten-2; padding: 0 1; }
    & #unavailable {
        display: none;
        margin-left: 14;
        color: $text-muted;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    & TextArea:focus { border: round $border; }
    & .error { color: $text-error; height: auto; display: none; margin-left: 14; }
    & ModelForm .help { display: none; }
    & ModelForm .help.said { display: block; height: auto; }
    & ModelForm .label { width: 14; }
    & ModelForm Editor { height: 4; }
    & ModelForm .error { margin-left: 14; }
    & #attached { color: $text-muted; height: auto; display: none; }
    & #message-error { margin-left: 0; }
    & #form-error { margin-left: 0; }
    & #hint { color: $text-muted; }
    & #buttons { height: auto; align-horizontal: right; }
    & Button { margin-left: 2; }
    &.-normal { align: left middle; }
    &.-normal > VerticalScroll { width: 1fr; margin: 1 0 1 26; }
    &.-wide { align: left middle; }
    &.-wide > VerticalScroll { width: 1fr; max-width: 96; margin: 1 0 1 34; }
}
"""


MORE_PATHS = [field.path for field in FIELDS]
OWN = "own"
"""The environment choice for the repository's own, created when there is none."""

NO_IMAGE = (
    "Not a PNG, JPEG, GIF or WebP image; other files can be attached once the replica exists."
)


class CreateScreen(Dialog[ReplicaDetail | Typed], SettledLayout[ReplicaDetail | Typed]):
    """Asks for repository, environment, agent, name and first message.

    Dismissed with the new replica, or with what was typed. A refusal is shown next to its field and
    nothing typed is lost.
    """

    DEFAULT_CSS = STYLE
    place: ClassVar[KeyContext] = KeyContext.NEW_REPLICA
    # Not the container of everything, which would get the focus first: each widget would be styled for it.
    AUTO_FOCUS = "#message"
    # Beside the list, which stays visible where there is room for both.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (72, "-normal"), (120, "-wide")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="form.close"),
        Binding("ctrl+s", "submit", "Create", id="form.save"),
        *(
            binding
            for binding in bindings(KeyContext.NEW_REPLICA)
            if binding.id in ("composer.attach", "composer.detach")
        ),
        # With priority, so that what is typed after it goes to the next field.
        Binding("tab", "app.focus_next", "Next", show=False, priority=True, id="form.next"),
        Binding(
            "shift+tab", "app.focus_previous", "Before", show=False, priority=True, id="form.before"
        ),
    ]

    def __init__(self, app_state: AppState, typed: Typed) -> None:
        """`typed` are the initial values of the fields."""
        super().__init__()
        self._app_state = app_state
        self._typed = typed
        self._attachments = list(typed.attachments)
        self._choices: CreationChoices | None = None
        self._busy = False
        self._waits = False
        """Whether the error says that the choices could not be read yet."""

    def compose(self) -> ComposeResult:
        box = VerticalScroll(can_focus=False)
        box.border_title = "New replica"
        with box:
            message = MessageField(self._typed.message, id="message")
            message.border_title = "Prompt (optional)"
            message.cursor_blink = False
            message.take_image = self._take_dropped
            yield message
            yield Static(id="attached", markup=False)
            yield Static(id="message-error", classes="error own", markup=False)
            hint = "path, git URL or pull request (empty for none)"
            yield from self._row("repository", _input("repository", self._typed.repository, hint))
            yield BaseField(self._app_state, self._typed.base, self._typed.include_uncommitted)
            yield from self._row("agent", _select("agent", "builtin", BUILTIN))
            yield Static(id="unavailable", markup=False)
            yield from self._row("model", _input("model", self._typed.model, "Agent default"))
            yield from self._row(
                "environment", _select("environment", "Default for this repository", OWN)
            )
            yield from self._row("name", _input("name", self._typed.name, "auto"))
            yield more_form(self._typed.more)
            yield Static(id="form-error", classes="error own", markup=False)
            yield Static(
                keyed("{form.save} create · {composer.attach} image · {form.close} close"),
                id="hint",
                markup=False,
            )
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button("Create", id="create", variant="primary", compact=True)

    def _row(self, name: str, field: Input | Select[str]) -> ComposeResult:
        with Horizontal(classes="row"):
            yield Label(name.capitalize())
            yield field
        yield Static(id=f"{name}-error", classes="error own", markup=False)

    def on_mount(self) -> None:
        message = self.query_one("#message", TextArea)
        message.move_cursor(message.document.end)
        self._show_attachments()
        self.set_focus(message)
        self._offer_bases()
        self._stop_watching = self._app_state.changed.watch(self._note_change)
        self._read_choices()

    def on_unmount(self) -> None:
        self._stop_watching()

    # choices

    def _note_change(self, change: Change) -> None:
        """Read the choices as soon as the service answers, if they could not be read before."""
        if isinstance(change, ConnectionChanged) and self._app_state.online and not self._choices:
            self._read_choices()

    @work(exclusive=True, group="choices")
    async def _read_choices(self) -> None:
        try:
            self._choices = await choices(self._app_state.client)
        except LinkError as error:
            self.show_error(FORM, f"{error} Agents and environments follow when it answers.")
            self._waits = True
            return
        except ClientError as error:
            self.show_error(FORM, f"Could not load options: {error}")
            return
        if self._waits:
            self._waits = False
            self.query_one(f"#{FORM}-error").display = False
        self._offer_agents(self._choices.agents)
        self._offer_environments()
        self._offer_bases()

    def _offer_agents(self, agents: Sequence[Agent]) -> None:
        missing = self.query_one("#unavailable", Static)
        others = [agent for agent in agents if not agent.available]
        missing.display = bool(others)
        missing.update(_missing_words(others))
        usable = [agent for agent in agents if agent.available]
        usual = usual_agent(usable)
        if usual is None:
            return
        select = self._select("agent")
        chosen = select.value
        select.set_options([(Text(one_line(agent.name)), agent.id) for agent in usable])
        ids = [agent.id for agent in usable]
        if chosen == BUILTIN or chosen not in ids:
            chosen = usual
        select.value = chosen

    @on(Select.Changed, "#agent")
    @work(exclusive=True, group="models")
    async def _offer_models(self, event: Select.Changed) -> None:
        try:
            offered = await models_of(self._app_state.client, str(event.value))
        except ClientError:
            return  # nothing is offered then; anything may be typed
        self.query_one("#model", Input).suggester = SuggestFromList(offered, case_sensitive=False)

    @on(Input.Blurred, "#repository")
    def _offer_bases(self) -> None:
        self._take_pull_request()
        self.query_one(BaseField).offer(self._repository(), self._choices)

    @on(Input.Changed, "#repository")
    def _offer_environments(self) -> None:
        if self._choices is None:
            return
        url = self._repository()
        fitting = self._choices.of_repository(url) if url else self._choices.environments
        first = ("Default for this repository", OWN) if url else ("global (no repository)", OWN)
        named = [(entry.name, str(entry.id)) for entry in fitting if not entry.is_global]
        options = [(Text(one_line(words)), value) for words, value in (first, *named)]
        select = self._select("environment")
        chosen = select.value
        select.set_options(options)
        select.value = chosen if any(value == chosen for _, value in options) else OWN

    def _take_pull_request(self) -> None:
        """Replace the address of a pull request by its repository and, as the base, its number."""
        if (found := pull_request_at(self._text("repository"))) is not None:
            url, number = found
            url = self._choices.known_url(url) if self._choices else url
            self.query_one("#repository", Input).value = url
            self.query_one(BaseField).base = f"#{number}"

    def _select(self, name: str) -> Select[str]:
        return cast("Select[str]", self.query_one(f"#{name}", Select))

    def _text(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value.strip()

    def _repository(self) -> str:
        """Return the repository as the service knows it: a local path in full."""
        return in_full(self._text("repository"))

    # attachments

    def _show_attachments(self) -> None:
        line = self.query_one("#attached", Static)
        line.display = bool(self._attachments)
        line.update(attached_words("first", self._attachments))

    @work(exclusive=True, group="attach")
    async def action_attach(self) -> None:
        """Ask for an image, and attach it."""
        await ask_for_file(self, "Attach an image", self._take_file)

    async def _take_file(self, file: FileRead) -> None:
        if file.image is None:
            raise WrongFieldError("path", NO_IMAGE)
        self._attachments.append(Attachment(file.path.name, image=file.image))
        self._show_attachments()

    async def _take_dropped(self, file: FileRead) -> bool:
        await self._take_file(file)
        return True

    def action_detach(self) -> None:
        """Remove the attachments."""
        self._attachments.clear()
        self._show_attachments()

    # creating

    def _request(self) -> CreationRequest:
        environment = self._select("environment").value
        return CreationRequest(
            repository_url=self._repository() or None,
            environment_id=None if environment == OWN else UUID(str(environment)),
            agent=str(self._select("agent").value),
            model=self._text("model") or None,
            name=self._text("name") or None,
            message=self.query_one("#message", TextArea).text.strip(),
            images=images_among(self._attachments),
        )

    @on(Input.Submitted)
    def _next_field(self) -> None:
        self.focus_next()

    @on(Button.Pressed, "#create")
    def action_submit(self) -> None:
        if not self._busy:
            self._submit()

    @work(exclusive=True, group="submit")
    async def _submit(self) -> None:
        await self._settle()
        self._take_pull_request()
        more = self.more.check()
        if not isinstance(more, More):
            return
        request = with_more(self._request(), more)
        if (unused := unused_repositories(request)) is not None:
            self.more.show_refusal(unused)
            return
        for static in self.query(".own").results(Static):
            static.display = False
        wrong = check_message(request.message, len(request.images))
        if wrong is None and request.name:
            wrong = check_name(request.name)
        if wrong is not None:
            self.show_error(wrong.field, wrong.text)
            return
        self._set_busy(True)
        try:
            request = await self.query_one(BaseField).with_start(request)
            names = [state.name for state in self._app_state.replicas.values()]
            created = await create(self._app_state.client, request, names)
        except WrongBaseError as wrong_base:
            self.show_error(wrong_base.error.field, wrong_base.error.text)
        except ClientError as error:
            self._refuse(error, request)
            self._read_choices()
        else:
            self.dismiss(created)
        finally:
            self._set_busy(False)

    async def _settle(self) -> None:
        """Wait until every field has processed what was typed before."""
        await settled(*self.query("Input, TextArea"))
        await self.more.settle()

    def _refuse(self, error: ClientError, request: CreationRequest) -> None:
        rare = refusal_of(error, MORE_PATHS)
        if rare.beside:
            self.more.show_refusal(rare)
        else:
            wrong = place_error(error, request)
            self.show_error(wrong.field, wrong.text)

    @property
    def more(self) -> ModelForm:
        """The folded fields."""
        return self.query_one("#more", ModelForm)

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        if self.is_mounted:
            self.query_one("#create", Button).label = "Creating …" if busy else "Create"

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        if self._busy:
            # It may have been created all the same; the next read of the list shows it.
            self._app_state.reconnect_now()
        message, start = self.query_one("#message", TextArea).text, self.query_one(BaseField)
        typed = Typed(
            self._text("repository"),
            self._text("name"),
            message,
            self._text("model"),
            self.more.values(),
            start.base,
            start.include,
            tuple(self._attachments),
        )
        self.dismiss(typed)


def _missing_words(agents: Sequence[Agent]) -> str:
    """Return why agents cannot be used: those that only have to be installed in one place."""
    words = [
        f"{one_line(agent.name)}: {one_line(agent.reason or 'not available')}"
        for agent in agents
        if agent.installed
    ]
    names = [one_line(agent.name) for agent in agents if not agent.installed]
    return " · ".join([*words, *([f"Not installed: {', '.join(names)}"] if names else [])])


def _input(name: str, value: str, placeholder: str) -> Input:
    field = Input(value, placeholder=placeholder, id=name, compact=True)
    field.cursor_blink = False
    return field


def _select(name: str, words: str, value: str) -> Select[str]:
    return Select([(words, value)], value=value, allow_blank=False, id=name, compact=True)


KEPT = (
    "The new replica has the same files, branches and uncommitted changes.\n"
    "The newest chat continues there if its agent supports that;\n"
    "otherwise it is copied to a file next to the repositories."
)


class ForkScreen(FormScreen[ReplicaDetail]):
    """Dismissed with the new replica, or with None."""

    def __init__(self, commands: Commands, state: ReplicaState) -> None:
        fields = (
            Field("message", "Prompt (optional)", kind=FieldKind.LINES, rows=4),
            Field("name", placeholder=f"{name_line(state.name)}-fork", rule="no spaces"),
        )

        async def save(body: BaseModel) -> ReplicaDetail:
            return await commands.fork(state.id, cast("ForkReplica", body))

        title = f"Fork {name_line(state.name)}"
        super().__init__(title, ModelForm(ForkReplica, fields), save, verb="Fork")

    def extra(self) -> ComposeResult:
        """Part of `FormScreen`."""
        yield Static(KEPT, markup=False)
