"""`qd env show`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.env.find import environment_argument, find_environment
from quarterdeck.cli.env.masking import reveal_option, shown, shown_config
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, safe_line
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environment_files import EnvironmentFile
    from quarterdeck.wire.environment_hooks import EnvironmentHook
    from quarterdeck.wire.environment_mcps import EnvironmentMcp
    from quarterdeck.wire.environment_skills import EnvironmentSkill
    from quarterdeck.wire.environment_variables import EnvironmentVariable
    from quarterdeck.wire.environments import Environment


@dataclass(frozen=True)
class Whole:
    """An environment with everything that it carries itself."""

    environment: "Environment"
    variables: "list[EnvironmentVariable]"
    files: "list[EnvironmentFile]"
    skills: "list[EnvironmentSkill]"
    mcps: "list[EnvironmentMcp]"
    warm_hook: "EnvironmentHook | None"
    start_hook: "EnvironmentHook | None"


@click.command(name="show")
@environment_argument
@reveal_option
@common_options
def command(common: Common, environment: str, reveal: bool) -> None:
    """Show an environment with its own parts. Values are masked unless --reveal is given."""

    async def read(client: "Client") -> Whole:
        found = await find_environment(client, environment)
        return Whole(
            found,
            await client.variables.list(found.id),
            await client.environment_files.list(found.id),
            await client.skills.list(found.id),
            await client.mcps.list(found.id),
            (await client.environment_hooks.warm(found.id)).warm_hook,
            await client.environment_hooks.start(found.id),
        )

    whole = with_client(common, read)
    if common.json:
        put_json(_plain(whole, reveal))
        return
    for line in _lines(whole, reveal):
        put(line)


def _plain(whole: Whole, reveal: bool) -> dict[str, Any]:
    def dumped(one: Any) -> Any:
        return None if one is None else one.model_dump(mode="json")

    return {
        "environment": dumped(whole.environment),
        "environment_variables": [
            {**dumped(one), "value": shown(one.value, reveal)} for one in whole.variables
        ],
        "environment_files": [dumped(one) for one in whole.files],
        "environment_skills": [dumped(one) for one in whole.skills],
        "environment_mcps": [
            {**dumped(one), "config": shown_config(one.config, reveal)} for one in whole.mcps
        ],
        "warm_hook": dumped(whole.warm_hook),
        "start_hook": dumped(whole.start_hook),
    }


def _lines(whole: Whole, reveal: bool) -> Iterator[str]:
    one = whole.environment
    yield f"name           {safe_line(one.name)}"
    yield f"id             {one.id}"
    for label, value in (
        ("description", one.description),
        ("repository", one.repository_id),
        ("set", one.repository_set_id),
        ("source", one.source_environment_id),
        ("system prompt", one.system_prompt),
        ("preferences", one.personal_preferences),
    ):
        if value:
            yield f"{label:<14} {safe_line(str(value))}"
    for variable in whole.variables:
        yield f"variable       {variable.key}={safe_line(shown(variable.value, reveal))}"
    for file in whole.files:
        yield f"file           {safe_line(file.path)} ({len(file.content.encode())} bytes)"
    for skill in whole.skills:
        yield f"skill          {skill.slug} from {safe_line(skill.source)}"
    for mcp in whole.mcps:
        where = mcp.config.get("command") or mcp.config.get("url")
        yield f"mcp            {mcp.name} {mcp.transport} {safe_line(str(where))}"
    for label, hook in (("warm hook", whole.warm_hook), ("start hook", whole.start_hook)):
        if hook is not None:
            yield f"{label:<14} version {hook.version}"
