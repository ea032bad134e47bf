"""The dialog that creates a replica."""

from collections.abc import Sequence
from typing import ClassVar, cast
from uuid import UUID

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Label, OptionList, Select, Static, TextArea

from quarterdeck.client.errors import ClientError
from quarterdeck.store.creation import Choices, Wish, choices, create, models_of
from quarterdeck.store.deck import Deck
from quarterdeck.tui.actions import Where, bindings
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.attachments import (
    Attachment,
    FileRead,
    ask_for_file,
    attached_words,
    images_among,
)
from quarterdeck.tui.forms.create_errors import (
    FORM,
    FieldError,
    check_message,
    check_name,
    place_error,
)
from quarterdeck.tui.forms.create_more import (
    FIELDS,
    More,
    more_form,
    unused_repositories,
    with_more,
)
from quarterdeck.tui.forms.create_style import STYLE
from quarterdeck.tui.forms.kit import ModelForm, refusal_of, settled
from quarterdeck.tui.forms.message_field import MessageField
from quarterdeck.tui.forms.paths import in_full
from quarterdeck.tui.forms.typed import Typed
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.panes.chat_ask import WrongFieldError
from quarterdeck.tui.screens.dialog import Dialog
from quarterdeck.tui.text import one_line
from quarterdeck.tui.type_ahead import release_keys
from quarterdeck.wire.agents import BUILTIN, Agent
from quarterdeck.wire.replicas import ReplicaDetail

MORE_PATHS = [field.path for field in FIELDS]
OWN = "own"
"""The environment choice that means: the repository's own, made when there is none."""

NO_IMAGE = "It is no PNG, JPEG, GIF or WebP image: other files can be attached once it is there."


class CreateScreen(SettledLayout[ReplicaDetail | Typed], Dialog[ReplicaDetail | Typed]):
    """Asks for repository, environment, agent, name and first message.

    Dismissed with the new replica, or with what was typed. A refusal is shown beside its field and
    nothing typed is lost.
    """

    DEFAULT_CSS = STYLE
    place: ClassVar[Where] = Where.NEW_REPLICA
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="form.close"),
        Binding("ctrl+s", "submit", "Create", id="form.save"),
        *(
            one
            for one in bindings(Where.NEW_REPLICA)
            if one.id in ("composer.attach", "composer.detach")
        ),
        # With priority, so that what is typed after it goes to the next field.
        Binding("tab", "app.focus_next", "Next", show=False, priority=True, id="form.next"),
        Binding(
            "shift+tab", "app.focus_previous", "Before", show=False, priority=True, id="form.before"
        ),
    ]

    def __init__(self, deck: Deck, typed: Typed) -> None:
        """`typed` is what the fields begin with."""
        super().__init__()
        self._deck = deck
        self._typed = typed
        self._attachments = list(typed.attachments)
        self._choices: Choices | None = None
        self._busy = False

    def compose(self) -> ComposeResult:
        box = VerticalScroll()
        box.border_title = "New replica"
        with box:
            hint = "path or git URL; empty: no repository"
            yield from self._row("repository", _input("repository", self._typed.repository, hint))
            yield from self._row("environment", _select("environment", "the repository's own", OWN))
            yield from self._row("agent", _select("agent", "builtin", BUILTIN))
            yield from self._row(
                "model", _input("model", self._typed.model, "the agent's own choice")
            )
            yield from self._row("name", _input("name", self._typed.name, "made from the message"))
            message = MessageField(self._typed.message, id="message")
            message.border_title = "First message (may be empty)"
            message.cursor_blink = False
            yield message
            yield Static(id="attached", markup=False)
            yield Static(id="message-error", classes="error own", markup=False)
            yield more_form(self._typed.more)
            yield Static(id="form-error", classes="error own", markup=False)
            yield Static(
                keyed(
                    "{form.save} creates, {form.next} moves, {form.close} closes, "
                    "{composer.attach} attaches an image"
                ),
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
        release_keys(self)
        self._read_choices()

    # what can be chosen

    @work(exclusive=True, group="choices")
    async def _read_choices(self) -> None:
        try:
            self._choices = await choices(self._deck.client)
        except ClientError as error:
            self._say(FieldError(FORM, f"What can be chosen could not be read: {error}"))
            return
        self._offer_agents(self._choices.agents)
        self._offer_environments()

    def _offer_agents(self, agents: Sequence[Agent]) -> None:
        select = self._select("agent")
        if not agents:
            return
        chosen = select.value
        agents = sorted(agents, key=lambda agent: not agent.available)
        select.set_options([(Text(_agent_words(agent)), agent.id) for agent in agents])
        usable = [agent.id for agent in agents if agent.available]
        if chosen == BUILTIN or chosen not in usable:
            chosen = next((id for id in usable if id != BUILTIN), agents[0].id)
        select.value = chosen
        listing = select.query_one(OptionList)
        for index, agent in enumerate(agents):
            if not agent.available:
                listing.disable_option_at_index(index)

    @on(Select.Changed, "#agent")
    @work(exclusive=True, group="models")
    async def _offer_models(self, event: Select.Changed) -> None:
        try:
            offered = await models_of(self._deck.client, str(event.value))
        except ClientError:
            return  # nothing is offered then; any may be typed
        self.query_one("#model", Input).suggester = SuggestFromList(offered, case_sensitive=False)

    @on(Input.Changed, "#repository")
    def _offer_environments(self) -> None:
        if self._choices is None:
            return
        url = self._repository()
        fitting = self._choices.of_repository(url) if url else self._choices.environments
        first = ("the repository's own", OWN) if url else ("global (no repository)", OWN)
        named = [(entry.name, str(entry.id)) for entry in fitting if not entry.is_global]
        options = [(Text(one_line(words)), value) for words, value in (first, *named)]
        select = self._select("environment")
        chosen = select.value
        select.set_options(options)
        select.value = chosen if any(value == chosen for _, value in options) else OWN

    def _select(self, name: str) -> Select[str]:
        return cast(Select[str], self.query_one(f"#{name}", Select))

    def _text(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value.strip()

    def _repository(self) -> str:
        """The repository as the service knows it: a local path in full."""
        return in_full(self._text("repository"))

    # what goes with the message

    def _show_attachments(self) -> None:
        line = self.query_one("#attached", Static)
        line.display = bool(self._attachments)
        line.update(attached_words("first", self._attachments))

    @work(exclusive=True, group="attach")
    async def action_attach(self) -> None:
        """Asks for an image, and takes it along."""
        await ask_for_file(self, "Attach an image", self._take_file)

    async def _take_file(self, file: FileRead) -> None:
        if file.image is None:
            raise WrongFieldError("path", NO_IMAGE)
        self._attachments.append(Attachment(file.path.name, image=file.image))
        self._show_attachments()

    def action_detach(self) -> None:
        """Nothing goes with the message any more."""
        self._attachments.clear()
        self._show_attachments()

    # creating

    def _wish(self) -> Wish:
        environment = self._select("environment").value
        return Wish(
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
        more = self.more.check()
        if not isinstance(more, More):
            return
        wish = with_more(self._wish(), more)
        if (unused := unused_repositories(wish)) is not None:
            self.more.show_refusal(unused)
            return
        for static in self.query(".own").results(Static):
            static.display = False
        wrong = check_message(wish.message, len(wish.images))
        if wrong is None and wish.name:
            wrong = check_name(wish.name)
        if wrong is not None:
            self._say(wrong)
            return
        self._set_busy(True)
        try:
            taken = [state.name for state in self._deck.replicas.values()]
            made = await create(self._deck.client, wish, taken)
        except ClientError as error:
            self._refuse(error, wish)
            self._read_choices()
        else:
            self.dismiss(made)
        finally:
            self._set_busy(False)

    async def _settle(self) -> None:
        """Waits until every field has taken in what was typed into it before."""
        await settled(*self.query("Input, TextArea"))
        await self.more.settle()

    def _refuse(self, error: ClientError, wish: Wish) -> None:
        rare = refusal_of(error, MORE_PATHS)
        if rare.beside:
            self.more.show_refusal(rare)
        else:
            self._say(place_error(error, wish))

    @property
    def more(self) -> ModelForm:
        """The folded fields."""
        return self.query_one("#more", ModelForm)

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        if self.is_mounted:
            self.query_one("#create", Button).label = "Creating …" if busy else "Create"

    def _say(self, error: FieldError) -> None:
        beside = self.query_one(f"#{error.field}-error", Static)
        beside.update(Text(one_line(error.text)))
        beside.display = True
        if error.field == FORM:
            self.call_after_refresh(beside.scroll_visible, animate=False)
        else:
            self.set_focus(self.query_one(f"#{error.field}"))

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        if self._busy:
            # It may be made all the same; the next look at the list shows it.
            self._deck.reconnect_now()
        message = self.query_one("#message", TextArea).text
        typed = Typed(
            self._text("repository"),
            self._text("name"),
            message,
            self._text("model"),
            self.more.values(),
            tuple(self._attachments),
        )
        self.dismiss(typed)


def _agent_words(agent: Agent) -> str:
    name = one_line(agent.name)
    return name if agent.available else f"{name}: {one_line(agent.reason or 'not available')}"


def _input(name: str, value: str, placeholder: str) -> Input:
    field = Input(value, placeholder=placeholder, id=name, compact=True)
    field.cursor_blink = False
    return field


def _select(name: str, words: str, value: str) -> Select[str]:
    return Select([(words, value)], value=value, allow_blank=False, id=name, compact=True)
