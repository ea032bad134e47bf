"""Fields of the dialog that creates a replica, and the errors shown next to them."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator
from textual import events, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.suggester import SuggestFromList
from textual.widgets import Input, Label, Static

from quarterdeck.client.errors import (
    ClientError,
    ConflictError,
    InvalidRequestError,
    LinkError,
    NotConnectedError,
    NotFoundError,
    PayloadTooLargeError,
    ResponseError,
)
from quarterdeck.local.repository import (
    CheckoutError,
    CheckoutStart,
    CheckoutState,
    LocalRepository,
    TooLargeError,
)
from quarterdeck.store.app_state import AppState
from quarterdeck.store.creation import CreationChoices, CreationRequest, Size, branches_of
from quarterdeck.store.git import RequestedRepository
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import KeyContext, action_id_of, keyed
from quarterdeck.tui.forms.kit import Field, FieldKind, ModelForm, Refusal
from quarterdeck.tui.forms.kit.controls import OnOff
from quarterdeck.tui.host_services import TakesImages
from quarterdeck.wire.base import ONE_LINE, Body, Switch
from quarterdeck.wire.chats import ThinkingLevel
from quarterdeck.wire.replicas import (
    NAME_LIMIT,
    NAME_RULE,
    UNCOMMITTED_LIMIT,
    LifecyclePolicy,
    ReplicaConfig,
    is_replica_name,
)

if TYPE_CHECKING:
    from quarterdeck.tui.host_services import Attachment


FORM = "form"
"""The place of errors that concern no single field."""


@dataclass(frozen=True)
class FieldError:
    """An error and the field that it is shown next to."""

    field: str
    text: str


def check_name(name: str) -> FieldError | None:
    """Return the error of a name, before the service is asked."""
    if any(character.isspace() for character in name):
        return FieldError("name", "Names cannot contain spaces; use - instead.")
    if one_line(name) != name:
        return FieldError("name", "A name has no control characters.")
    if len(name) > NAME_LIMIT:
        return FieldError("name", f"A name has at most {NAME_LIMIT} characters.")
    if not is_replica_name(name):
        return FieldError("name", f"A name has {NAME_RULE}.")
    return None


def check_message(message: str, images: int) -> FieldError | None:
    """Return the error of the first message, before the service is asked."""
    if images and not message:
        return FieldError("message", "Images need a message: write what to do with them.")
    return None


def place_error(error: ClientError, request: CreationRequest) -> FieldError:
    """Show a refusal next to the field that it names."""
    details = error.details or "" if isinstance(error, ResponseError) else ""
    about, _, more = details.partition(":")
    text = one_line(str(error))
    match error:
        case ConflictError() if about == "name" or (about == "" and request.name):
            return FieldError("name", f"{text} Choose another one, or leave it empty.")
        case NotFoundError():
            return FieldError("environment", f"{text} It may have been deleted: choose another.")
        case PayloadTooLargeError() if request.uncommitted is not None and not request.images:
            return FieldError("base", f"{text} {one_line(more)}".strip())
        case InvalidRequestError() | PayloadTooLargeError() if about.startswith("images"):
            return FieldError("message", f"{text} {one_line(more)}".strip())
        case InvalidRequestError() if about == "url" or (about == "" and request.repository_url):
            reason = one_line(more)
            return FieldError("repository", f"{text} {reason}".strip())
        case InvalidRequestError() if about in _BASES:
            return FieldError("base", f"{text} {one_line(more)}".strip())
        case InvalidRequestError() if about == "coding_agent":
            return FieldError("agent", text)
        case InvalidRequestError() if about == "model":
            return FieldError("model", text)
        case InvalidRequestError() if about == "name":
            return FieldError("name", text)
        case NotConnectedError():
            return FieldError(FORM, f"{text} " + keyed("Your input is kept; {form.save} to retry."))
        case LinkError():
            return FieldError(FORM, f"{text} It may already exist; check the list before retrying.")
        case _:
            return FieldError(FORM, f"{text} {one_line(error.next_step)}")


_BASES = ("config.base", "config.pull_request", "config.uncommitted")
_SHORT = 10
_NUMBER = re.compile(r"#([1-9][0-9]{0,8})")
_PULL_REQUEST = re.compile(
    r"(https?://.+?)(?:/-)?/(?:pull|merge_requests)/([1-9][0-9]{0,8})(?:[/?#].*)?"
)


def pull_request_at(typed: str) -> tuple[str, int] | None:
    """Return the repository and the number of the pull request whose address was typed."""
    found = _PULL_REQUEST.fullmatch(typed)
    return (found[1], int(found[2])) if found else None


class WrongBaseError(Exception):
    """The replica cannot start from this; `error` says why, next to the field."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.error = FieldError("base", one_line(text))


@dataclass(frozen=True)
class _Here:
    """The user's checkout of the repository; all fields are None when there is none here."""

    checkout: LocalRepository | None = None
    start: CheckoutStart | None = None
    state: CheckoutState | None = None


class BaseField(Vertical):
    """Asks for a branch, tag, commit or pull request, and whether to include uncommitted files."""

    def __init__(self, app_state: AppState, base: str, include: bool) -> None:
        """Accept the initial values of the fields: `base` and `include`."""
        super().__init__(id="start")
        self._app_state = app_state
        self._base = base
        self._include = include

    def compose(self) -> ComposeResult:
        with Horizontal(classes="row"):
            yield Label("Base")
            field = Input(self._base, placeholder="default branch", id="base", compact=True)
            field.cursor_blink = False
            yield field
        yield Static(id="base-error", classes="error own", markup=False)
        with Horizontal(classes="row", id="uncommitted-row"):
            yield Label("Uncommitted")
            yield OnOff(self._include, id="uncommitted")

    def on_mount(self) -> None:
        self.query_one("#uncommitted-row").display = False

    @property
    def base(self) -> str:
        """What was typed."""
        return self.query_one("#base", Input).value.strip()

    @base.setter
    def base(self, base: str) -> None:
        self.query_one("#base", Input).value = base

    @property
    def include(self) -> bool:
        """Whether uncommitted files are included, where there are any."""
        return self.query_one(OnOff).value

    @work(exclusive=True, group="base")
    async def offer(self, url: str, choices: CreationChoices | None) -> None:
        """Offer what a repository has: the branches of the local checkout, else of the service."""
        here = await self._here(url)
        branches: list[str] = []
        if here.checkout is not None:
            try:
                branches = await here.checkout.branches()
            except CheckoutError:
                branches = []  # anything may be typed
        elif choices is not None and (known := choices.repository(url)) is not None:
            try:
                branches = await branches_of(self._app_state.client, known.id)
            except ClientError:
                branches = []
        field = self.query_one("#base", Input)
        field.placeholder = _placeholder(here)
        field.suggester = SuggestFromList(branches, case_sensitive=True)
        files = here.state.uncommitted if here.state else 0
        self.query_one("#uncommitted-row").display = files > 0
        self.query_one(OnOff).label = f"include {files} {'file' if files == 1 else 'files'}"

    async def _here(self, url: str) -> _Here:
        local = bool(url) and await asyncio.to_thread(Path(url).is_dir)
        directory = Path(url) if local else self._app_state.directory
        if not url or directory is None:
            return _Here()
        try:
            checkout = await LocalRepository.find(directory)
            start = await checkout.start(url)
            return _Here(checkout, start, await checkout.state()) if start else _Here()
        except CheckoutError:
            return _Here()

    async def with_start(self, request: CreationRequest) -> CreationRequest:
        """Return the request with the values of these fields.

        Raises:
            WrongBaseError: the values are invalid.
        """
        url = request.repository_url
        if url is None:
            if self.base and request.environment_id is None:
                raise WrongBaseError("Name the repository above.")
            return replace(request, base=self.base or None)
        if (number := _NUMBER.fullmatch(self.base)) is not None:
            if self.include and self.query_one("#uncommitted-row").display:
                raise WrongBaseError("Uncommitted files cannot be added to a pull request.")
            return replace(request, pull_request=int(number[1]))
        here = await self._here(url)
        base = self.base or (here.start.base if here.start else None)
        request = replace(request, base=base)
        if not self.include or here.checkout is None or here.start is None:
            return request
        if here.start.unpushed:
            raise WrongBaseError(
                f"{here.start.base} has commits that are not pushed. Push first, or leave the"
                " uncommitted files out."
            )
        try:
            snapshot = await here.checkout.snapshot(UNCOMMITTED_LIMIT)
        except TooLargeError as error:
            raise WrongBaseError(f"{error} Largest: {error.details}.") from error
        except CheckoutError as error:
            raise WrongBaseError(f"{error} {error.details or ''}".strip()) from error
        return request if snapshot is None else replace(request, uncommitted=snapshot.bundle)


def _placeholder(here: _Here) -> str:
    if here.start is None or here.state is None:
        return "default branch"
    if here.state.branch is None:
        return f"{here.start.base[:_SHORT]} (checked out)"
    unpushed = here.start.unpushed
    commits = f", {unpushed} not pushed" if unpushed else ""
    return one_line(f"{here.start.base} (checked out{commits})")


def in_full(typed: str) -> str:
    """Return a local path in full; anything else unchanged."""
    typed = typed.strip()
    path = Path(typed).expanduser()
    if typed and "://" not in typed and path.exists():
        return str(path.resolve())
    return typed


def _checked(line: str) -> str:
    if len(line.split()) > 2:
        raise ValueError("each line is a path or URL, and after a blank a branch")
    return line


class More(Body):
    """The fields of `CreateReplica` that have a default, and more of the repositories."""

    others: list[Annotated[str, AfterValidator(_checked)]] = []
    plan_mode: Switch = False
    goal_mode: Switch = False
    fast_mode: Switch = False
    thinking_level: ThinkingLevel | None = None
    size: Size | None = None
    lifecycle_policy: LifecyclePolicy | None = None
    config: ReplicaConfig | None = None
    webhook_url: Annotated[str, ONE_LINE] | None = None


FIELDS = (
    Field(
        "others",
        "More repositories",
        "Cloned next to the first. Optional branch after a space.",
        kind=FieldKind.LIST,
        rows=2,
    ),
    Field("plan_mode", "Plan mode", "Propose a plan before changing anything."),
    Field("goal_mode", "Goal mode", "Keep working until the goal is met."),
    Field("fast_mode", "Fast mode", "Less reasoning, if the agent supports it."),
    Field("thinking_level", "Thinking", none="Agent default"),
    Field("size", help="How much of the machine it may use.", none="Default"),
    Field(
        "lifecycle_policy",
        "When done",
        "When the work is finished.",
        options=(
            ("Default", "default"),
            ("archive it", "archive_when_done"),
            ("sleep", "sleep_when_done"),
            ("delete it when nothing happens", "delete_after_inactivity"),
        ),
        none="Default",
    ),
    Field("config.auto_stop_minutes", "Sleep when idle for", "Minutes without activity."),
    Field("webhook_url", "Webhook", "Receives status events.", placeholder="https://"),
)


def more_form(start: Mapping[str, Any]) -> ModelForm:
    """Return the fields, folded unless one of them has a value."""
    return ModelForm(
        More, [replace(declared, folded=True) for declared in FIELDS], start, id="more"
    )


def with_more(request: CreationRequest, more: More) -> CreationRequest:
    """Return the request with the values of these fields."""
    return replace(
        request,
        others=tuple(_repository(line) for line in more.others),
        plan_mode=more.plan_mode,
        goal_mode=more.goal_mode,
        fast_mode=more.fast_mode,
        thinking_level=more.thinking_level,
        size=more.size,
        lifecycle_policy=more.lifecycle_policy,
        auto_stop_minutes=more.config.auto_stop_minutes if more.config else None,
        webhook_url=more.webhook_url,
    )


def unused_repositories(request: CreationRequest) -> Refusal | None:
    """Return an error when more repositories were named that would have no effect."""
    if not request.others:
        return None
    if request.environment_id is not None:
        words = "Repositories come from the selected environment; select the repository's default."
    elif request.repository_url is None:
        words = "Name the first repository above."
    else:
        return None
    return Refusal({"others": words})


def _repository(line: str) -> RequestedRepository:
    url, *branch = line.split()
    return RequestedRepository(in_full(url), branch[0] if branch else None)


class MessageField(TakesImages):
    """Tab leaves it, as in every other field."""

    def __init__(self, text: str, *, id: str) -> None:
        super().__init__(text, id=id, tab_behavior="focus")

    async def _on_key(self, event: events.Key) -> None:
        if action_id_of(KeyContext.COMPOSER, event.key) == "composer.newline":
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)


@dataclass(frozen=True)
class Typed:
    """The fields of the create dialog."""

    repository: str
    name: str
    message: str
    model: str = ""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The values of the folded fields."""
    base: str = ""
    include_uncommitted: bool = False
    attachments: "tuple[Attachment, ...]" = ()
    """Images that are sent with the message."""
