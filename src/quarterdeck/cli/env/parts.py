"""`qd env variables`, `files`, `skills`, `mcp`, `hooks` and `test`: parts of an environment."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

import click

from quarterdeck.cli.clients import with_client
from quarterdeck.cli.errors import AmbiguousNameError, Exit, FailedError, UsageError
from quarterdeck.cli.lookup import environment_argument, with_environment
from quarterdeck.cli.options import (
    Common,
    common_options,
    empty_option,
    masked,
    masked_config,
    read_secret,
    read_text,
    require_content,
    reveal_option,
)
from quarterdeck.cli.output import (
    json_text,
    print_json,
    print_message,
    print_records,
    print_success,
    print_text,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from quarterdeck.client import Client
    from quarterdeck.client.environments import ChangeableParts, EnvironmentParts
    from quarterdeck.wire.environment_parts import (
        CreateSkill,
        EnvironmentFile,
        EnvironmentHook,
        EnvironmentMcp,
        EnvironmentPart,
        EnvironmentSkill,
        EnvironmentVariable,
        HookTest,
    )


Part = TypeVar("Part", bound="EnvironmentPart")


@dataclass(frozen=True)
class PartCommands(Generic[Part]):
    """Parts of one kind. `group` is their command, `names` returns what a part may be called by."""

    noun: str
    group: str
    parts: "Callable[[Client], EnvironmentParts[Part, Any]]"
    names: Callable[[Part], Sequence[str]]

    def list(self, common: Common, environment: str) -> "list[Part]":
        """Return the environment's own parts."""
        return with_environment(common, environment, lambda client, of: self.parts(client).list(of))

    async def find(self, client: "Client", of: UUID, name: str, environment: str) -> Part:
        """Return the part of a name.

        Raises:
            FailedError: there is none.
        """
        for part in await self.parts(client).list(of):
            if name in self.names(part):
                return part
        raise FailedError(
            f"There is no {self.noun} {name!r}.",
            f"See them with: qd env {self.group} ls {environment}.",
        )

    def remove(self, common: Common, environment: str, name: str) -> None:
        """Remove the part of a name."""

        async def remove(client: "Client", of: UUID) -> None:
            part = await self.find(client, of, name, environment)
            await self.parts(client).delete(of, part.id)

        with_environment(common, environment, remove)
        print_success(f"Removed {name}.", common.json)


async def _put(
    parts: "ChangeableParts[Part, Any, Any]",
    of: UUID,
    known: UUID | None,
    create: "BaseModel",
    change: "BaseModel",
) -> Part:
    """Change the part with a known id, or add a new one."""
    if known is None:
        return await parts.add(of, create)
    return await parts.change(of, known, change)


def read_dotenv(text: str) -> dict[str, str]:
    """Return the variables in order; the later value of a repeated key counts.

    Raises:
        UsageError: a line that is no assignment, or that an environment cannot have, by its number.
    """
    from quarterdeck.store.environment_paste import fault_of, parse

    values: dict[str, str] = {}
    for line in parse(text):
        if fault := fault_of(line):
            raise UsageError(f"Line {line.number}: {fault}")
        values[line.key] = line.value
    return values


@click.group(name="variables")
def variables() -> None:
    """Manage variables. Values come from stdin or a file, never from arguments."""


@variables.command(name="ls")
@environment_argument
@reveal_option
@common_options
def list_variables(common: Common, environment: str, reveal: bool) -> None:
    """List variables by key; values are masked unless --reveal is given."""
    known = with_environment(common, environment, lambda client, of: client.variables.list(of))
    print_records(
        common.json,
        "environment_variables",
        [_shown_variable(variable, reveal) for variable in known],
        ["KEY", "VALUE", "OVERRIDE"],
        lambda variable: [
            variable.key,
            variable.value,
            "allowed" if variable.personal_override_allowed else "-",
        ],
    )


@variables.command(name="set")
@environment_argument
@click.argument("key", metavar="KEY")
@click.option(
    "--from", "source", metavar="FILE", help="Read the value from a file instead of stdin."
)
@click.option(
    "--override/--no-override",
    default=None,
    help="Whether personal environments may set their own value.",
)
@empty_option
@common_options
def set_variable(
    common: Common,
    environment: str,
    key: str,
    source: str | None,
    override: bool | None,
    empty: bool,
) -> None:
    """Set one variable; on a terminal, the value is read from a hidden prompt."""
    if "=" in key:
        raise UsageError(
            f"{key.partition('=')[0]}=… is not a key.",
            "Give the key alone: the value is read from a prompt or stdin, so no history keeps it.",
        )
    text = read_text(source) if source else read_secret(f"Value of {key}")
    value = require_content(text, empty)

    async def write(client: "Client", of: UUID) -> "EnvironmentVariable":
        known = {variable.key: variable.id for variable in await client.variables.list(of)}
        return await _put_variable(client, of, known, key, value, override)

    variable = with_environment(common, environment, write)
    if common.json:
        print_json({"environment_variable": _shown_variable(variable, False)})
    else:
        print_message(f"{key} is set.")


@variables.command(name="import")
@environment_argument
@click.argument("source", metavar="[FILE]", required=False)
@common_options
def import_variables(common: Common, environment: str, source: str | None) -> None:
    """Set every variable of a .env file, or of stdin. Others stay as they are."""
    wanted = read_dotenv(read_text(source))

    async def write(client: "Client", of: UUID) -> list[str]:
        known = {variable.key: variable.id for variable in await client.variables.list(of)}
        for key, value in wanted.items():
            await _put_variable(client, of, known, key, value, None)
        return list(wanted)

    keys = with_environment(common, environment, write)
    if common.json:
        print_json({"success": True, "set": keys})
    else:
        print_message(f"{len(keys)} variables are set.")


@variables.command(name="rm")
@environment_argument
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@common_options
def remove_variables(common: Common, environment: str, keys: tuple[str, ...]) -> None:
    """Remove variables."""

    async def remove(client: "Client", of: UUID) -> None:
        known = {variable.key: variable.id for variable in await client.variables.list(of)}
        missing = [key for key in keys if key not in known]
        if missing:
            raise FailedError(f"There is no variable {missing[0]!r}; nothing was removed.")
        for key in dict.fromkeys(keys):
            await client.variables.delete(of, known[key])
            print_message(f"Removed {key}.")

    with_environment(common, environment, remove)
    if common.json:
        print_json({"success": True, "deleted": list(keys)})


async def _put_variable(
    client: "Client",
    of: UUID,
    known: dict[str, UUID],
    key: str,
    value: str,
    override: bool | None,
) -> "EnvironmentVariable":
    from quarterdeck.wire.environment_parts import ChangeVariable, CreateVariable

    switch: dict[str, Any] = {} if override is None else {"personal_override_allowed": override}
    create = CreateVariable(key=key, value=value, **switch)
    change = ChangeVariable(value=value, **switch)
    return await _put(client.variables, of, known.get(key), create, change)


def _shown_variable(variable: "EnvironmentVariable", reveal: bool) -> "EnvironmentVariable":
    return variable.model_copy(update={"value": masked(variable.value, reveal)})


FILES = PartCommands["EnvironmentFile"](
    "file", "files", lambda client: client.environment_files, lambda file: [file.path]
)


def _in_home(_: click.Context, __: click.Parameter, path: str) -> str:
    """Return a path of this machine's home, which the shell makes of an unquoted `~/`, with `~/` again."""
    home = f"{Path.home()}/"
    return f"~/{path.removeprefix(home)}" if path.startswith(home) else path


path_argument = click.argument("path", metavar="PATH", callback=_in_home)


@click.group(name="files")
def files() -> None:
    """Manage files that are written into replicas. PATH is in the home, such as ~/.npmrc."""


@files.command(name="ls")
@environment_argument
@common_options
def list_files(common: Common, environment: str) -> None:
    """List files by path."""
    print_records(
        common.json,
        "environment_files",
        FILES.list(common, environment),
        ["PATH", "BYTES", "NAME"],
        lambda file: [file.path, str(len(file.content.encode())), file.name],
    )


@files.command(name="cat")
@environment_argument
@path_argument
@common_options
def print_file(common: Common, environment: str, path: str) -> None:
    """Print a file's content."""
    file = with_environment(
        common, environment, lambda client, of: FILES.find(client, of, path, environment)
    )
    if common.json:
        print_json({"environment_file": file})
    else:
        print_text(file.content, end="")


@files.command(name="put")
@environment_argument
@path_argument
@click.option("--from", "source", metavar="FILE", help="Read it from a file instead of stdin.")
@click.option("--name", metavar="NAME", help="Name; default: the end of its path.")
@empty_option
@common_options
def write_file(
    common: Common, environment: str, path: str, source: str | None, name: str | None, empty: bool
) -> None:
    """Create or replace a file.

    Such as: qd env files put global ~/.codex/config.toml --from ~/.codex/config.toml
    """
    from quarterdeck.wire.environment_parts import ChangeFile, CreateFile

    create = CreateFile(path=path, content=require_content(read_text(source), empty), name=name)
    change = ChangeFile(content=create.content, **({} if name is None else {"name": name}))

    async def write(client: "Client", of: UUID) -> "EnvironmentFile":
        known = {file.path: file.id for file in await client.environment_files.list(of)}
        return await _put(client.environment_files, of, known.get(path), create, change)

    file = with_environment(common, environment, write)
    if common.json:
        print_json({"environment_file": file})
    else:
        print_message(f"{path} is written.")


@files.command(name="rm")
@environment_argument
@path_argument
@common_options
def remove_file(common: Common, environment: str, path: str) -> None:
    """Remove a file from the environment; replicas keep theirs until they restart."""
    FILES.remove(common, environment, path)


SKILLS = PartCommands["EnvironmentSkill"](
    "skill", "skills", lambda client: client.skills, lambda skill: [skill.slug, str(skill.id)]
)


@click.group(name="skills")
def skills() -> None:
    """Manage skills that are installed into replicas."""


@skills.command(name="ls")
@environment_argument
@common_options
def list_skills(common: Common, environment: str) -> None:
    """List the skills of an environment."""
    print_records(
        common.json,
        "environment_skills",
        SKILLS.list(common, environment),
        ["SLUG", "NAME", "SOURCE"],
        lambda skill: [skill.slug, skill.name, skill.source],
    )


@skills.command(name="search")
@click.argument("query", metavar="[QUERY]", default="")
@common_options
def search_skills(common: Common, query: str) -> None:
    """Search the service's registries; without a query everything in them is listed."""
    matches = with_client(common, lambda client: client.skills.search(query))
    if not matches and not common.json:
        print_message("No matching skill in the service's registries.")
        return
    print_records(
        common.json,
        "skills",
        matches,
        ["SLUG", "SOURCE", "DESCRIPTION"],
        lambda skill: [skill.slug, skill.source, skill.description or skill.name],
    )


@skills.command(name="add")
@environment_argument
@click.argument("skill", metavar="SKILL")
@click.option("--slug", metavar="SLUG", help="Its directory's name, when SKILL is a source.")
@click.option("--name", metavar="NAME", help="Name; default: its slug.")
@common_options
def add_skill(
    common: Common, environment: str, skill: str, slug: str | None, name: str | None
) -> None:
    """Enable a skill: a slug that `search` finds, or a source (PATH#FOLDER, URL#FOLDER)."""
    from quarterdeck.wire.environment_parts import CreateSkill

    async def write(client: "Client", of: UUID) -> "EnvironmentSkill":
        if "/" in skill:
            guessed = slug or skill.rstrip("/#").replace("#", "/").rsplit("/", 1)[-1]
            create = CreateSkill(name=name or guessed, slug=guessed, source=skill)
        else:
            create = await _registered_skill(client, skill, name)
        return await client.skills.add(of, create)

    added = with_environment(common, environment, write)
    if common.json:
        print_json({"environment_skill": added})
    else:
        print_message(f"{added.slug} is enabled, from {added.source}.")


@skills.command(name="rm")
@environment_argument
@click.argument("slug", metavar="SLUG")
@common_options
def remove_skill(common: Common, environment: str, slug: str) -> None:
    """Remove a skill; replicas keep it until they restart."""
    SKILLS.remove(common, environment, slug)


async def _registered_skill(client: "Client", slug: str, name: str | None) -> "CreateSkill":
    from quarterdeck.wire.environment_parts import CreateSkill

    matches = [skill for skill in await client.skills.search(slug) if skill.slug == slug]
    if not matches:
        raise FailedError(f"No registry has a skill {slug!r}.", "Look with: qd env skills search.")
    if len(matches) > 1:
        sources = ", ".join(skill.source for skill in matches)
        raise AmbiguousNameError(f"{slug!r} is in several places: {sources}.", "Give one of them.")
    return CreateSkill(name=name or matches[0].name, slug=slug, source=matches[0].source)


SERVERS = PartCommands["EnvironmentMcp"](
    "server", "mcp", lambda client: client.mcps, lambda server: [server.name, str(server.id)]
)


@click.group(name="mcp")
def mcp() -> None:
    """Manage MCP servers that agents can use."""


@mcp.command(name="ls")
@environment_argument
@reveal_option
@common_options
def list_servers(common: Common, environment: str, reveal: bool) -> None:
    """List servers; values of variables and headers are masked unless --reveal is given."""
    print_records(
        common.json,
        "environment_mcps",
        [_shown_server(server, reveal) for server in SERVERS.list(common, environment)],
        ["NAME", "TRANSPORT", "CONFIG"],
        lambda server: [server.name, server.transport, json_text(server.config)],
    )


@mcp.command(name="set")
@environment_argument
@click.argument("name", metavar="NAME")
@click.argument("transport", type=click.Choice(["stdio", "http", "sse"]))
@click.option("--from", "source", metavar="FILE", help="Read it from a file instead of stdin.")
@common_options
def set_server(
    common: Common, environment: str, name: str, transport: str, source: str | None
) -> None:
    """Set a server; its configuration is read as JSON.

    stdio: {"command": ..., "args": [...], "env": {...}}; http and sse: {"url": ..., "headers":
    {...}}.
    """
    from quarterdeck.wire.environment_parts import ChangeMcp, CreateMcp, McpTransport

    create = CreateMcp(
        name=name, transport=McpTransport(transport), config=_read_server_config(source)
    )
    change = ChangeMcp(transport=create.transport, config=create.config)

    async def write(client: "Client", of: UUID) -> "EnvironmentMcp":
        known = {server.name: server.id for server in await client.mcps.list(of)}
        return await _put(client.mcps, of, known.get(name), create, change)

    server = with_environment(common, environment, write)
    if common.json:
        print_json({"environment_mcp": _shown_server(server, False)})
    else:
        print_message(f"{name} is set.")


@mcp.command(name="rm")
@environment_argument
@click.argument("name", metavar="NAME")
@common_options
def remove_server(common: Common, environment: str, name: str) -> None:
    """Remove a server."""
    SERVERS.remove(common, environment, name)


def _read_server_config(source: str | None) -> dict[str, Any]:
    try:
        config = json.loads(read_text(source))
    except ValueError as e:
        raise UsageError("The configuration is not valid JSON.") from e
    if not isinstance(config, dict):
        raise UsageError("The configuration is not a JSON object.")
    return {str(field): value for field, value in config.items()}  # pyright: ignore


def _shown_server(server: "EnvironmentMcp", reveal: bool) -> "EnvironmentMcp":
    return server.model_copy(update={"config": masked_config(server.config, reveal)})


WARM = "warm"
kind_argument = click.argument("kind", type=click.Choice([WARM, "start"]))


@click.group(name="hooks")
def hooks() -> None:
    """Manage hooks: warm ones prepare a replica once, start ones run at each start."""


@hooks.command(name="show")
@environment_argument
@kind_argument
@common_options
def show_hook(common: Common, environment: str, kind: str) -> None:
    """Print the current script."""

    async def read(client: "Client", of: UUID) -> "EnvironmentHook | None":
        if kind == WARM:
            return (await client.environment_hooks.warm(of)).warm_hook
        return await client.environment_hooks.start(of)

    hook = with_environment(common, environment, read)
    if common.json:
        print_json({f"{kind}_hook": hook})
    elif hook is None:
        print_message(f"There is no {kind} hook.")
    else:
        print_text(hook.content, end="" if hook.content.endswith("\n") else "\n")


@hooks.command(name="save")
@environment_argument
@kind_argument
@click.option("--from", "source", metavar="FILE", help="Read it from a file instead of stdin.")
@empty_option
@common_options
def save_hook(common: Common, environment: str, kind: str, source: str | None, empty: bool) -> None:
    """Save a script as the current hook. An empty start hook removes the current one."""
    content = require_content(read_text(source), empty)

    async def write(client: "Client", of: UUID) -> "EnvironmentHook | None":
        if kind == WARM:
            return await client.environment_hooks.save_warm(of, content)
        return await client.environment_hooks.save_start(of, content)

    hook = with_environment(common, environment, write)
    if common.json:
        print_json({f"{kind}_hook": hook})
    elif hook is None:
        print_message(f"The {kind} hook was deleted.")
    else:
        print_message(f"Version {hook.version} of the {kind} hook is active.")


@click.command(name="test")
@environment_argument
@kind_argument
@click.option("--from", "source", metavar="FILE", help="Script to test; - reads stdin.")
@click.option("--save", is_flag=True, help="Save a warm hook; it becomes active if it ends with 0.")
@common_options
def test_hook(common: Common, environment: str, kind: str, source: str | None, save: bool) -> None:
    """Run a hook in a temporary replica.

    Without --from the current hook is tested. Exit code 1 when the hook's is not 0.
    """
    if save and (kind != WARM or source is None):
        raise click.UsageError("--save needs a warm hook and --from.")
    content = None if source is None else read_text(None if source == "-" else source)
    print_message("Running the hook in a new replica ...")

    async def run(client: "Client", of: UUID) -> "HookTest":
        if save:
            saved = await client.hook_tests.save_warm(of, content or "")
            state = "active" if saved.warm_hook.is_active else "saved, not active"
            print_message(f"Version {saved.warm_hook.version} is {state}.")
            return saved.test
        if kind == WARM:
            return await client.hook_tests.warm(of, content)
        return await client.hook_tests.start(of, content)

    test = with_environment(common, environment, run)
    if common.json:
        print_json({"test": test})
    else:
        print_text(test.output, end="" if test.output.endswith("\n") or not test.output else "\n")
        print_message("Timed out." if test.timed_out else f"Exit status {test.exit_code}.")
    if test.exit_code != 0:
        raise SystemExit(Exit.REFUSED)
