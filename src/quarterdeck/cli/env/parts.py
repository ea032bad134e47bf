"""`qd env files`, `skills`, `mcp`, `hooks` and `test`: parts of an environment."""

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from quarterdeck.cli.clients import with_client
from quarterdeck.cli.errors import AmbiguousNameError, Exit, FailedError, UsageError
from quarterdeck.cli.lookup import environment_argument, with_environment
from quarterdeck.cli.options import Common, common_options, masked_config, read_text, reveal_option
from quarterdeck.cli.output import (
    json_text,
    print_json,
    print_message,
    print_success,
    print_table,
    print_text,
)

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environment_parts import (
        CreateSkill,
        EnvironmentFile,
        EnvironmentHook,
        EnvironmentMcp,
        EnvironmentSkill,
        HookTest,
    )


path_argument = click.argument("path", metavar="PATH")


@click.group(name="files")
def files() -> None:
    """Manage files that are written into replicas. PATH starts with ~/ (quote it)."""


@files.command(name="ls")
@environment_argument
@common_options
def list_files(common: Common, environment: str) -> None:
    """List files by path."""
    found = with_environment(
        common, environment, lambda client, id: client.environment_files.list(id)
    )
    if common.json:
        print_json({"environment_files": [one.model_dump(mode="json") for one in found]})
        return
    print_table(
        ["PATH", "BYTES", "NAME"],
        ([one.path, str(len(one.content.encode())), one.name] for one in found),
    )


@files.command(name="cat")
@environment_argument
@path_argument
@common_options
def print_file(common: Common, environment: str, path: str) -> None:
    """Print a file's content."""
    one = with_environment(
        common, environment, lambda client, id: _find_file(client, id, path, environment)
    )
    if common.json:
        print_json({"environment_file": one.model_dump(mode="json")})
    else:
        print_text(one.content, end="")


@files.command(name="put")
@environment_argument
@path_argument
@click.option("--from", "source", metavar="FILE", help="Read it from a file instead of stdin.")
@click.option("--name", metavar="NAME", help="Name; default: the end of its path.")
@common_options
def write_file(
    common: Common, environment: str, path: str, source: str | None, name: str | None
) -> None:
    """Create or replace a file."""
    from quarterdeck.wire.environment_parts import ChangeFile, CreateFile

    file = CreateFile(path=path, content=read_text(source), name=name)

    async def write(client: "Client", of: UUID) -> "EnvironmentFile":
        for known in await client.environment_files.list(of):
            if known.path == path:
                named = {} if name is None else {"name": name}
                change = ChangeFile(content=file.content, **named)
                return await client.environment_files.change(of, known.id, change)
        return await client.environment_files.add(of, file)

    one = with_environment(common, environment, write)
    if common.json:
        print_json({"environment_file": one.model_dump(mode="json")})
    else:
        print_message(f"{path} is written.")


@files.command(name="rm")
@environment_argument
@path_argument
@common_options
def remove_file(common: Common, environment: str, path: str) -> None:
    """Remove a file from the environment; replicas keep theirs until they restart."""

    async def remove(client: "Client", of: UUID) -> None:
        await client.environment_files.delete(
            of, (await _find_file(client, of, path, environment)).id
        )

    with_environment(common, environment, remove)
    print_success(f"{path} is gone.", common.json)


async def _find_file(
    client: "Client", environment_id: UUID, path: str, environment: str
) -> "EnvironmentFile":
    for known in await client.environment_files.list(environment_id):
        if known.path == path:
            return known
    raise FailedError(
        f"There is no file {path!r}.", f"See them with: qd env files ls {environment}."
    )


@click.group(name="skills")
def skills() -> None:
    """Manage skills that are installed into replicas."""


@skills.command(name="ls")
@environment_argument
@common_options
def list_skills(common: Common, environment: str) -> None:
    """List the skills of an environment."""
    found = with_environment(common, environment, lambda client, id: client.skills.list(id))
    if common.json:
        print_json({"environment_skills": [one.model_dump(mode="json") for one in found]})
        return
    print_table(["SLUG", "NAME", "SOURCE"], ([one.slug, one.name, one.source] for one in found))


@skills.command(name="search")
@click.argument("query", metavar="[QUERY]", default="")
@common_options
def search_skills(common: Common, query: str) -> None:
    """Search the service's registries; without a query everything in them is listed."""
    found = with_client(common, lambda client: client.skills.search(query))
    if common.json:
        print_json({"skills": [one.model_dump(mode="json") for one in found]})
        return
    if not found:
        print_message("No skill of the service's registries fits.")
        return
    rows = ([one.slug, one.source, one.description or one.name] for one in found)
    print_table(["SLUG", "SOURCE", "DESCRIPTION"], rows)


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
            wanted = CreateSkill(name=name or guessed, slug=guessed, source=skill)
        else:
            wanted = await _registered_skill(client, skill, name)
        return await client.skills.add(of, wanted)

    one = with_environment(common, environment, write)
    if common.json:
        print_json({"environment_skill": one.model_dump(mode="json")})
    else:
        print_message(f"{one.slug} is enabled, from {one.source}.")


@skills.command(name="rm")
@environment_argument
@click.argument("slug", metavar="SLUG")
@common_options
def remove_skill(common: Common, environment: str, slug: str) -> None:
    """Remove a skill; replicas keep it until they restart."""

    async def remove(client: "Client", of: UUID) -> None:
        for one in await client.skills.list(of):
            if slug in (one.slug, str(one.id)):
                await client.skills.delete(of, one.id)
                return
        raise FailedError(f"There is no skill {slug!r}.", f"See: qd env skills ls {environment}.")

    with_environment(common, environment, remove)
    print_success(f"{slug} is gone.", common.json)


async def _registered_skill(client: "Client", slug: str, name: str | None) -> "CreateSkill":
    from quarterdeck.wire.environment_parts import CreateSkill

    found = [one for one in await client.skills.search(slug) if one.slug == slug]
    if not found:
        raise FailedError(f"No registry has a skill {slug!r}.", "Look with: qd env skills search.")
    if len(found) > 1:
        sources = ", ".join(one.source for one in found)
        raise AmbiguousNameError(f"{slug!r} is in several places: {sources}.", "Give one of them.")
    return CreateSkill(name=name or found[0].name, slug=slug, source=found[0].source)


@click.group(name="mcp")
def mcp() -> None:
    """Manage MCP servers that agents can use."""


@mcp.command(name="ls")
@environment_argument
@reveal_option
@common_options
def list_servers(common: Common, environment: str, reveal: bool) -> None:
    """List servers; values of variables and headers are masked unless --reveal is given."""
    found = with_environment(common, environment, lambda client, id: client.mcps.list(id))
    if common.json:
        print_json({"environment_mcps": [_server_json(one, reveal) for one in found]})
        return
    rows = (
        [one.name, one.transport, json_text(masked_config(one.config, reveal))] for one in found
    )
    print_table(["NAME", "TRANSPORT", "CONFIG"], rows)


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

    server = CreateMcp(
        name=name, transport=McpTransport(transport), config=_read_server_config(source)
    )

    async def write(client: "Client", of: UUID) -> "EnvironmentMcp":
        for known in await client.mcps.list(of):
            if known.name == name:
                change = ChangeMcp(transport=server.transport, config=server.config)
                return await client.mcps.change(of, known.id, change)
        return await client.mcps.add(of, server)

    one = with_environment(common, environment, write)
    if common.json:
        print_json({"environment_mcp": _server_json(one, False)})
    else:
        print_message(f"{name} is set.")


@mcp.command(name="rm")
@environment_argument
@click.argument("name", metavar="NAME")
@common_options
def remove_server(common: Common, environment: str, name: str) -> None:
    """Remove a server."""

    async def remove(client: "Client", of: UUID) -> None:
        for one in await client.mcps.list(of):
            if name in (one.name, str(one.id)):
                await client.mcps.delete(of, one.id)
                return
        raise FailedError(f"There is no server {name!r}.", f"See: qd env mcp ls {environment}.")

    with_environment(common, environment, remove)
    print_success(f"{name} is gone.", common.json)


def _read_server_config(source: str | None) -> dict[str, Any]:
    try:
        config = json.loads(read_text(source))
    except ValueError as e:
        raise UsageError("The configuration is not valid JSON.") from e
    if not isinstance(config, dict):
        raise UsageError("The configuration is not a JSON object.")
    return {str(field): value for field, value in config.items()}  # pyright: ignore


def _server_json(one: "EnvironmentMcp", reveal: bool) -> dict[str, object]:
    return {**one.model_dump(mode="json"), "config": masked_config(one.config, reveal)}


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
        print_json({f"{kind}_hook": hook and hook.model_dump(mode="json")})
    elif hook is None:
        print_message(f"There is no {kind} hook.")
    else:
        print_text(hook.content, end="" if hook.content.endswith("\n") else "\n")


@hooks.command(name="save")
@environment_argument
@kind_argument
@click.option("--from", "source", metavar="FILE", help="Read it from a file instead of stdin.")
@common_options
def save_hook(common: Common, environment: str, kind: str, source: str | None) -> None:
    """Save a script as the current hook. An empty start hook removes the current one."""
    content = read_text(source)

    async def write(client: "Client", of: UUID) -> "EnvironmentHook | None":
        if kind == WARM:
            return await client.environment_hooks.save_warm(of, content)
        return await client.environment_hooks.save_start(of, content)

    hook = with_environment(common, environment, write)
    if common.json:
        print_json({f"{kind}_hook": hook and hook.model_dump(mode="json")})
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
    print_message("Running it in a new replica ...")

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
        print_json({"test": test.model_dump(mode="json")})
    else:
        print_text(test.output, end="" if test.output.endswith("\n") or not test.output else "\n")
        print_message("Timed out." if test.timed_out else f"It ended with {test.exit_code}.")
    if test.exit_code != 0:
        raise SystemExit(Exit.REFUSED)
