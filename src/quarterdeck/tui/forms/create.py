"""The dialog that creates a replica."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast
from uuid import UUID

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Select, Static, TextArea

from quarterdeck.client.errors import ClientError, Conflict, InvalidRequest
from quarterdeck.store.creation import Choices, Wish, choices, create
from quarterdeck.store.deck import Deck
from quarterdeck.tui.text import one_line
from quarterdeck.wire.replicas import ReplicaDetail

OWN = "own"
"""The environment choice that means: the repository's own, made when there is none."""


@dataclass(frozen=True)
class FieldError:
    """What is wrong and beside which field it is shown."""

    field: str
    text: str


def place_error(error: ClientError, wish: Wish) -> FieldError:
    """Puts a refusal beside the field that it speaks of."""
    details = (getattr(error, "details", None) or "").lower()
    text = one_line(str(error))
    if isinstance(error, Conflict) or "name" in details.split(":")[0]:
        return FieldError("name", text)
    if "agent" in details:
        return FieldError("agent", text)
    if isinstance(error, InvalidRequest) and wish.repository_url:
        return FieldError("repository", text)
    return FieldError("message", text)


class CreateScreen(ModalScreen[ReplicaDetail | None]):
    """Asks for repository, environment, agent, name and first message.

    Dismissed with the new replica, or None. A refusal is shown beside its field and nothing typed
    is lost.
    """

    DEFAULT_CSS = """
    CreateScreen {
        align: center middle;
        & > VerticalScroll {
            width: 76;
            max-width: 98%;
            height: auto;
            max-height: 98%;
            padding: 0 2;
            background: $surface;
            border: round $primary;
        }
        & Label { width: 14; color: $text-muted; }
        & .row { height: auto; }
        & Input, & Select { width: 1fr; }
        & TextArea { height: 5; border: round $border-blurred; padding: 0 1; }
        & TextArea:focus { border: round $border; }
        & .error { color: $text-error; height: auto; display: none; margin-left: 14; }
        & #hint { color: $text-muted; }
        & #buttons { height: auto; align-horizontal: right; }
        & Button { margin-left: 2; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("ctrl+s", "submit", "Create"),
    ]

    def __init__(self, deck: Deck, directory: Path | None) -> None:
        """`directory` is the repository offered first, or None."""
        super().__init__()
        self._deck = deck
        self._directory = directory
        self._choices: Choices | None = None
        self._busy = False

    def compose(self) -> ComposeResult:
        box = VerticalScroll()
        box.border_title = "New replica"
        with box:
            repository = str(self._directory) if self._directory else ""
            placeholder = "path or git URL; empty: no repository"
            yield from self._row(
                "repository",
                Input(repository, placeholder=placeholder, id="repository", compact=True),
            )
            yield from self._row(
                "environment",
                Select(
                    [("the repository's own", OWN)],
                    value=OWN,
                    allow_blank=False,
                    id="environment",
                    compact=True,
                ),
            )
            yield from self._row(
                "agent",
                Select(
                    [("builtin", "builtin")],
                    value="builtin",
                    allow_blank=False,
                    id="agent",
                    compact=True,
                ),
            )
            yield from self._row(
                "name", Input(placeholder="made from the message", id="name", compact=True)
            )
            message = TextArea(id="message", tab_behavior="focus")
            message.border_title = "First message (may be empty)"
            message.cursor_blink = False
            yield message
            yield Static(id="message-error", classes="error", markup=False)
            yield Static("ctrl+s creates, tab moves, escape closes", id="hint", markup=False)
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button("Create", id="create", variant="primary", compact=True)

    def _row(self, name: str, field: Input | Select[str]) -> ComposeResult:
        if isinstance(field, Input):
            field.cursor_blink = False
        with Horizontal(classes="row"):
            yield Label(name.capitalize())
            yield field
        yield Static(id=f"{name}-error", classes="error", markup=False)

    def on_mount(self) -> None:
        self.query_one("#message", TextArea).focus()
        self._read_choices()

    @work(exclusive=True)
    async def _read_choices(self) -> None:
        try:
            self._choices = await choices(self._deck.client)
        except ClientError as error:
            self._show_error(FieldError("message", one_line(str(error))))
            return
        agents = self._choices.agents
        select = self._select("agent")
        usable = [(a.name, a.id) for a in agents if a.available]
        if usable:
            select.set_options(usable)
            select.value = next((id for _, id in usable if id != "builtin"), usable[0][1])
        self._offer_environments()

    @on(Input.Changed, "#repository")
    def _offer_environments(self) -> None:
        if self._choices is None:
            return
        url = self._repository()
        fitting = self._choices.environments
        if url:
            fitting = self._choices.of_repository(url)
        first = ("the repository's own", OWN) if url else ("global (no repository)", OWN)
        named = [(one_line(entry.name), str(entry.id)) for entry in fitting if not entry.is_global]
        options = [first, *named]
        select = self._select("environment")
        chosen = select.value
        select.set_options(options)
        select.value = chosen if any(value == chosen for _, value in options) else OWN

    def _select(self, name: str) -> Select[str]:
        return cast(Select[str], self.query_one(f"#{name}", Select))

    def _repository(self) -> str:
        return self.query_one("#repository", Input).value.strip()

    def _wish(self) -> Wish:
        environment = self._select("environment").value
        repository = self._repository()
        path = Path(repository).expanduser()
        if repository and "://" not in repository and path.exists():
            repository = str(path.resolve())
        return Wish(
            repository_url=repository or None,
            environment_id=None if environment == OWN else UUID(str(environment)),
            agent=str(self._select("agent").value),
            name=self.query_one("#name", Input).value.strip() or None,
            message=self.query_one("#message", TextArea).text.strip(),
        )

    @on(Button.Pressed, "#create")
    def action_submit(self) -> None:
        if not self._busy:
            self._submit()

    @work(exclusive=True)
    async def _submit(self) -> None:
        wish = self._wish()
        self._clear_errors()
        if wish.name and any(c.isspace() for c in wish.name):
            self._show_error(FieldError("name", "A name has no white space: use - instead."))
            return
        self._set_busy(True)
        try:
            taken = [state.name for state in self._deck.replicas.values()]
            made = await create(self._deck.client, wish, taken)
        except ClientError as error:
            self._show_error(place_error(error, wish))
        else:
            self.dismiss(made)
        finally:
            self._set_busy(False)

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        if self.is_mounted:
            self.query_one("#create", Button).label = "Creating …" if busy else "Create"

    def _clear_errors(self) -> None:
        for static in self.query(".error").results(Static):
            static.display = False

    def _show_error(self, error: FieldError) -> None:
        beside = self.query_one(f"#{error.field}-error", Static)
        beside.update(error.text)
        beside.display = True
        self.query_one(f"#{error.field}").focus()

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        self.dismiss(None)
