"""Dialogs and fields of environments."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator
from pydantic import Field as Bounds

from quarterdeck.client.errors import InvalidRequestError
from quarterdeck.store.creation import repository_options
from quarterdeck.store.environments import EnvironmentBook
from quarterdeck.tui.environments.section import Parts
from quarterdeck.tui.forms.create_fields import in_full
from quarterdeck.tui.forms.kit import (
    FILL,
    Field,
    FieldKind,
    FormScreen,
    InvalidValueError,
    ModelForm,
    Refusal,
    refusal_of,
)
from quarterdeck.tui.forms.kit.spec import Option
from quarterdeck.wire.environment_parts import (
    ChangeFile,
    ChangeVariable,
    CreateFile,
    CreateSkill,
    CreateVariable,
    EnvironmentFile,
    EnvironmentVariable,
)
from quarterdeck.wire.environments import (
    ChangeEnvironment,
    CreateEnvironment,
    Environment,
)
from quarterdeck.wire.permissions import (
    POLICIES,
    CostLimit,
    PermissionRule,
    PushPolicy,
    read_cost_limit,
)

KEY = Field(
    "key",
    "Name",
    "Variable name.",
    rule="Letters, digits and _, no digit first",
    placeholder="DATABASE_URL",
)
VALUE = Field("value", help="May have several lines.", kind=FieldKind.LINES, secret=True, rows=4)
OVERRIDE = Field(
    "personal_override_allowed",
    "Allow override",
    "Personal environments that inherit from this one may set their own value.",
)
VARIABLE = (KEY, VALUE, OVERRIDE)

FILE = (
    Field("path", help="Below the home directory: ~/name.", placeholder="~/.config/tool.toml"),
    Field(
        "content",
        help="{form.editor} opens it in $EDITOR.",
        kind=FieldKind.LINES,
        rows=FILL,
        named_by="path",
        trimmed=False,
    ),
    Field("name", help="Without one it is the last part of the path.", folded=True),
)

SKILL = (
    Field("name", help="Name in the list of skills."),
    Field("slug", help="The name of its directory.", rule="Letters, digits and . _ -"),
    Field(
        "source",
        help="A git URL or a path; after a # the directory that holds SKILL.md.",
        placeholder="https://host/skills.git#review",
    ),
)

PROMPT = Field(
    "system_prompt",
    "System prompt",
    "Instructions that every agent of the environment gets.",
    kind=FieldKind.LINES,
    rows=FILL,
)


def general(book: EnvironmentBook, environment: Environment | None) -> Sequence[Field]:
    """Return the fields of an environment; None for a new one."""
    bound = environment is not None and environment.source_environment_id is not None
    head = [
        Field("name", help="Unique in its scope."),
        Field("description", help="Purpose, for people."),
    ]
    owner_fields = [
        Field(
            "scope",
            "Scope",
            "Organization: visible to all members. Personal: only to you.",
            options=(("organization", "org"), ("personal", "user")),
        ),
        Field(
            "source_environment_id",
            "Inherits from",
            "Personal environments inherit repositories, prompt and contents.",
            kind=FieldKind.CHOICE,
            options=_sources(book),
            none="nothing",
        ),
    ]
    binding = [
        Field(
            "repository_id",
            "Repository",
            "Repository cloned into replicas.",
            kind=FieldKind.CHOICE,
            options=repository_options(book.repositories),
            none="no repository",
        ),
        Field(
            "connect",
            "Add repository",
            "Connects it and binds this environment to it.",
            placeholder="path or git URL",
        ),
        Field(
            "repository_set_id",
            "Or a set",
            "Several repositories together, in place of one.",
            kind=FieldKind.CHOICE,
            options=tuple(
                (repository_set.name, str(repository_set.id)) for repository_set in book.sets
            ),
            none="no set",
        ),
        Field("system_prompt", help=PROMPT.help, kind=FieldKind.LINES, rows=3),
    ]
    push = Field(
        "push",
        "Push",
        "Branches that agents may push to; uses your credentials.",
        kind=FieldKind.CHOICE,
        options=(
            ("ask in the chat", PushPolicy.ASK),
            ("own branch", PushPolicy.OWN_BRANCH),
            ("any branch", PushPolicy.ANY),
            ("never", PushPolicy.NEVER),
        ),
        none="as usual",
        folded=environment is None,
    )
    co_author = Field(
        "co_author",
        "Co-author",
        "Named by a Co-authored-by line in commits of agents.",
        placeholder="NAME <ADDRESS>",
        folded=environment is None,
    )
    preferences = Field(
        "personal_preferences",
        "Preferences",
        "Appended to the system prompt.",
        kind=FieldKind.LINES,
        rows=3,
        folded=environment is None,
    )
    fields = [*head, *(owner_fields if environment is None else [])]
    permissions = _permission_fields(environment)
    return [*fields, *([] if bound else binding), push, co_author, *permissions, preferences]


def _permission_fields(environment: Environment | None) -> Sequence[Field]:
    return (
        Field(
            "permission_policy",
            "Permissions",
            "Answers permission requests of agents in your place.",
            kind=FieldKind.CHOICE,
            options=tuple((words, policy) for policy, words in POLICIES.items()),
            none="as usual",
            folded=environment is None,
        ),
        Field(
            "rules",
            "Permission rules",
            "One a line; * at the end allows any further words. Rejecting comes first.",
            kind=FieldKind.LINES,
            rows=3,
            placeholder="allow git status *",
            folded=environment is None,
        ),
        Field(
            "cost_limit",
            "Cost limit",
            "Dollars after which the agents of a replica stop; 0 for no limit.",
            placeholder="no limit",
            folded=environment is None,
        ),
    )


def _sources(book: EnvironmentBook) -> tuple[Option, ...]:
    return tuple(
        (environment.name, str(environment.id))
        for environment in book.ordered()
        if environment.user_id is None and not environment.is_global
    )


B = TypeVar("B", bound=BaseModel)
Dialog = FormScreen[object]


def _dialog(
    title: str,
    model: type[B],
    shown: "tuple[Field, ...] | list[Field]",
    save: Callable[[B], Awaitable[object]],
    start: Mapping[str, Any] | None = None,
    *,
    verb: str = "Save",
) -> Dialog:
    """Return the dialog; with `start` it is an edit, and only changes are sent."""
    form = ModelForm(model, shown, start, changes_only=start is not None)
    return FormScreen(
        title, form, cast("Callable[[BaseModel], Awaitable[object]]", save), verb=verb
    )


def _dollars(value: object) -> object:
    return read_cost_limit(value) if isinstance(value, str) else value


EnteredLimit = Annotated[CostLimit | None, BeforeValidator(_dollars)]


class NewEnvironment(CreateEnvironment):
    """With a repository to connect first, rules as lines, and the cost limit as it was typed."""

    cost_limit: EnteredLimit = None
    connect: Annotated[str, Bounds(max_length=4096)] | None = None
    rules: str | None = None


class OtherEnvironment(ChangeEnvironment):
    """With a repository to connect first, rules as lines, and the cost limit as it was typed."""

    cost_limit: EnteredLimit = None
    connect: Annotated[str, Bounds(max_length=4096)] | None = None
    rules: str | None = None


async def _bound(book: EnvironmentBook, body: NewEnvironment | OtherEnvironment) -> dict[str, Any]:
    """Return the values entered, with the new repository in place of its URL, and the rules read.

    Raises:
        InvalidValueError: not a repository, or not a rule.
        ClientError: refused or unreachable.
    """
    given = body.model_dump(exclude={"connect", "rules"}, exclude_unset=True)
    if "rules" in body.model_fields_set:
        given["permission_rules"] = _read_rules(body.rules or "")
    if not body.connect:
        return given
    try:
        repository = await book.connect(in_full(body.connect))
    except InvalidRequestError as error:
        words = refusal_of(error, ["url"])
        message = words.beside.get("url", words.general)
        raise InvalidValueError(Refusal({"connect": message})) from None
    return {**given, "repository_id": repository.id}


def _read_rules(text: str) -> list[PermissionRule]:
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return [PermissionRule.of_line(line) for line in lines]
    except ValueError as error:
        raise InvalidValueError(Refusal({"rules": str(error)})) from None


def new_environment(book: EnvironmentBook) -> Dialog:
    """Create an environment."""

    async def save(body: NewEnvironment) -> Environment:
        return await book.create(CreateEnvironment.model_validate(await _bound(book, body)))

    shown = list(general(book, None))
    return _dialog("New environment", NewEnvironment, shown, save, verb="Create")


def change_environment(book: EnvironmentBook, environment: Environment) -> Dialog:
    """Edit an environment."""

    async def save(body: OtherEnvironment) -> Environment:
        change = ChangeEnvironment.model_validate(await _bound(book, body))
        return await book.change(environment.id, change)

    rules = "\n".join(rule.line for rule in environment.permission_rules)
    start = {**environment.model_dump(mode="json"), "rules": rules or None}
    shown = list(general(book, environment))
    return _dialog(environment.name, OtherEnvironment, shown, save, start)


def change_prompt(book: EnvironmentBook, environment: Environment) -> Dialog:
    """Return a dialog for the system prompt that uses all the room there is."""

    async def save(body: ChangeEnvironment) -> Environment:
        return await book.change(environment.id, body)

    start = {"system_prompt": environment.system_prompt}
    title = f"System prompt of {environment.name}"
    return _dialog(title, ChangeEnvironment, [PROMPT], save, start)


def new_variable(parts: Parts, environment: Environment) -> Dialog:
    """Add a variable."""

    async def save(body: CreateVariable) -> object:
        return await parts.contents.add_variable(environment, body)

    title = f"New variable of {environment.name}"
    return _dialog(title, CreateVariable, VARIABLE, save, verb="Add")


def change_variable(
    parts: Parts, environment: Environment, variable: EnvironmentVariable
) -> Dialog:
    """Change a variable."""

    async def save(body: ChangeVariable) -> object:
        return await parts.contents.change_variable(environment, variable.id, body)

    start = {
        "key": variable.key,
        "value": variable.value,
        "personal_override_allowed": variable.personal_override_allowed,
    }
    return _dialog(variable.key, ChangeVariable, VARIABLE, save, start)


def new_file(parts: Parts, environment: Environment) -> Dialog:
    """Add a file."""

    async def save(body: CreateFile) -> object:
        return await parts.contents.add_file(environment, body)

    return _dialog(f"New file of {environment.name}", CreateFile, FILE, save, verb="Add")


def change_file(parts: Parts, environment: Environment, file: EnvironmentFile) -> Dialog:
    """Change a file."""

    async def save(body: ChangeFile) -> object:
        return await parts.contents.change_file(environment, file.id, body)

    start = {"path": file.path, "name": file.name, "content": file.content}
    return _dialog(file.path, ChangeFile, FILE, save, start)


def skill_by_hand(parts: Parts, environment: Environment) -> Dialog:
    """Install a skill from a source that the user enters."""

    async def save(body: CreateSkill) -> object:
        return await parts.contents.add_skill(environment, body)

    title = f"Install a skill in {environment.name}"
    return _dialog(title, CreateSkill, SKILL, save, verb="Install")
