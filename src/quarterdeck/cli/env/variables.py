"""`qd env variables`: list, set, import and remove variables."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.lookup import environment_argument, with_environment
from quarterdeck.cli.options import (
    Common,
    common_options,
    masked,
    read_secret,
    read_text,
    reveal_option,
)
from quarterdeck.cli.output import print_json, print_message, print_table

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environment_parts import EnvironmentVariable


def read_dotenv(text: str) -> dict[str, str]:
    """Return the variables in order; the later value of a repeated key counts.

    Raises:
        UsageError: a line that is no assignment, or that an environment cannot have, by its number.
    """
    from quarterdeck.store.environment_paste import fault_of, parse

    found: dict[str, str] = {}
    for line in parse(text):
        if fault := fault_of(line):
            raise UsageError(f"Line {line.number}: {fault}")
        found[line.key] = line.value
    return found


@click.group(name="variables")
def variables() -> None:
    """Manage variables. Values come from stdin or a file, never from arguments."""


@variables.command(name="ls")
@environment_argument
@reveal_option
@common_options
def ls(common: Common, environment: str, reveal: bool) -> None:
    """List variables by key; values are masked unless --reveal is given."""
    found = with_environment(common, environment, lambda client, id: client.variables.list(id))
    if common.json:
        print_json({"environment_variables": [_json(one, reveal) for one in found]})
        return
    print_table(
        ["KEY", "VALUE", "OVERRIDE"],
        (
            [
                one.key,
                masked(one.value, reveal),
                "allowed" if one.personal_override_allowed else "-",
            ]
            for one in found
        ),
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
@common_options
def set_(
    common: Common, environment: str, key: str, source: str | None, override: bool | None
) -> None:
    """Set one variable; on a terminal, the value is read from a hidden prompt."""
    value = read_text(source) if source else read_secret(f"Value of {key}")

    async def write(client: "Client", of: UUID) -> "EnvironmentVariable":
        known = {one.key: one.id for one in await client.variables.list(of)}
        return await _put(client, of, known, key, value, override)

    one = with_environment(common, environment, write)
    if common.json:
        print_json({"environment_variable": _json(one, False)})
    else:
        print_message(f"{key} is set.")


@variables.command(name="import")
@environment_argument
@click.argument("source", metavar="[FILE]", required=False)
@common_options
def import_(common: Common, environment: str, source: str | None) -> None:
    """Set every variable of a .env file, or of stdin. Others stay as they are."""
    wanted = read_dotenv(read_text(source))

    async def write(client: "Client", of: UUID) -> list[str]:
        known = {one.key: one.id for one in await client.variables.list(of)}
        for key, value in wanted.items():
            await _put(client, of, known, key, value, None)
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
def rm(common: Common, environment: str, keys: tuple[str, ...]) -> None:
    """Remove variables."""

    async def remove(client: "Client", of: UUID) -> None:
        known = {one.key: one.id for one in await client.variables.list(of)}
        missing = [key for key in keys if key not in known]
        if missing:
            raise FailedError(f"There is no variable {missing[0]!r}; nothing was removed.")
        for key in dict.fromkeys(keys):
            await client.variables.delete(of, known[key])
            print_message(f"{key} is gone.")

    with_environment(common, environment, remove)
    if common.json:
        print_json({"success": True, "deleted": list(keys)})


async def _put(
    client: "Client",
    environment: UUID,
    known: dict[str, UUID],
    key: str,
    value: str,
    override: bool | None,
) -> "EnvironmentVariable":
    from quarterdeck.wire.environment_parts import ChangeVariable, CreateVariable

    switch: dict[str, Any] = {} if override is None else {"personal_override_allowed": override}
    if key in known:
        change = ChangeVariable(value=value, **switch)
        return await client.variables.change(environment, known[key], change)
    return await client.variables.add(environment, CreateVariable(key=key, value=value, **switch))


def _json(one: "EnvironmentVariable", reveal: bool) -> dict[str, object]:
    return {**one.model_dump(mode="json"), "value": masked(one.value, reveal)}
