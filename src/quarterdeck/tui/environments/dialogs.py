"""The dialogs that make and change environments and what they carry."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel
from pydantic import Field as Bounds

from quarterdeck.client.errors import InvalidRequest
from quarterdeck.store.environments import EnvironmentBook
from quarterdeck.tui.environments import fields
from quarterdeck.tui.environments.parts import Parts
from quarterdeck.tui.forms.kit import Field, FormScreen, ModelForm, Refusal, Refused, refusal_of
from quarterdeck.tui.forms.paths import in_full
from quarterdeck.wire.environment_files import ChangeFile, CreateFile, EnvironmentFile
from quarterdeck.wire.environment_skills import CreateSkill
from quarterdeck.wire.environment_variables import (
    ChangeVariable,
    CreateVariable,
    EnvironmentVariable,
)
from quarterdeck.wire.environments import ChangeEnvironment, CreateEnvironment, Environment

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
    """`start` makes it a change: only what was changed is sent."""
    form = ModelForm(model, shown, start, changes_only=start is not None)
    return FormScreen(
        title, form, cast("Callable[[BaseModel], Awaitable[object]]", save), verb=verb
    )


class NewEnvironment(CreateEnvironment):
    """With a repository to connect first."""

    connect: Annotated[str, Bounds(max_length=4096)] | None = None


class OtherEnvironment(ChangeEnvironment):
    """With a repository to connect first."""

    connect: Annotated[str, Bounds(max_length=4096)] | None = None


async def _bound(book: EnvironmentBook, body: NewEnvironment | OtherEnvironment) -> dict[str, Any]:
    """What the person gave, with the new repository in place of its URL.

    Raises:
        Refused: it is no repository.
        ClientError: refused or unreachable.
    """
    given = body.model_dump(exclude={"connect"}, exclude_unset=True)
    if not body.connect:
        return given
    try:
        made = await book.connect(in_full(body.connect))
    except InvalidRequest as error:
        words = refusal_of(error, ["url"])
        said = words.beside.get("url", words.general)
        raise Refused(Refusal({"connect": said})) from None
    return {**given, "repository_id": made.id}


def new_environment(book: EnvironmentBook) -> Dialog:
    """Makes an environment."""

    async def save(body: NewEnvironment) -> Environment:
        return await book.create(CreateEnvironment.model_validate(await _bound(book, body)))

    shown = list(fields.general(book, None))
    return _dialog("New environment", NewEnvironment, shown, save, verb="Create")


def change_environment(book: EnvironmentBook, environment: Environment) -> Dialog:
    """Changes what an environment is."""

    async def save(body: OtherEnvironment) -> Environment:
        change = ChangeEnvironment.model_validate(await _bound(book, body))
        return await book.change(environment.id, change)

    start = environment.model_dump(mode="json")
    shown = list(fields.general(book, environment))
    return _dialog(environment.name, OtherEnvironment, shown, save, start)


def change_prompt(book: EnvironmentBook, environment: Environment) -> Dialog:
    """Edits the system prompt with all the room there is."""

    async def save(body: ChangeEnvironment) -> Environment:
        return await book.change(environment.id, body)

    start = {"system_prompt": environment.system_prompt}
    title = f"System prompt of {environment.name}"
    return _dialog(title, ChangeEnvironment, [fields.PROMPT], save, start)


def new_variable(parts: Parts, environment: Environment) -> Dialog:
    """Adds a variable."""

    async def save(body: CreateVariable) -> object:
        return await parts.contents.add_variable(environment, body)

    title = f"New variable of {environment.name}"
    return _dialog(title, CreateVariable, fields.VARIABLE, save, verb="Add")


def change_variable(
    parts: Parts, environment: Environment, variable: EnvironmentVariable
) -> Dialog:
    """Changes a variable."""

    async def save(body: ChangeVariable) -> object:
        return await parts.contents.change_variable(environment, variable.id, body)

    start = {
        "key": variable.key,
        "value": variable.value,
        "personal_override_allowed": variable.personal_override_allowed,
    }
    return _dialog(variable.key, ChangeVariable, fields.VARIABLE, save, start)


def new_file(parts: Parts, environment: Environment) -> Dialog:
    """Adds a file."""

    async def save(body: CreateFile) -> object:
        return await parts.contents.add_file(environment, body)

    return _dialog(f"New file of {environment.name}", CreateFile, fields.FILE, save, verb="Add")


def change_file(parts: Parts, environment: Environment, file: EnvironmentFile) -> Dialog:
    """Changes a file."""

    async def save(body: ChangeFile) -> object:
        return await parts.contents.change_file(environment, file.id, body)

    start = {"path": file.path, "name": file.name, "content": file.content}
    return _dialog(file.path, ChangeFile, fields.FILE, save, start)


def skill_by_hand(parts: Parts, environment: Environment) -> Dialog:
    """Installs a skill from a source that a person writes down."""

    async def save(body: CreateSkill) -> object:
        return await parts.contents.add_skill(environment, body)

    title = f"Install a skill in {environment.name}"
    return _dialog(title, CreateSkill, fields.SKILL, save, verb="Install")
