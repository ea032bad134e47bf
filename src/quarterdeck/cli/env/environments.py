"""`qd env`: list, create, show, edit and delete environments; switch their warm pools."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import click

from quarterdeck.cli.clients import remove_all, with_client
from quarterdeck.cli.errors import UsageError
from quarterdeck.cli.lookup import (
    environment_argument,
    find_environment,
    find_repository,
    find_repository_set,
    with_environment,
)
from quarterdeck.cli.options import (
    Common,
    combined,
    common_options,
    complete_environment,
    masked,
    masked_config,
    require_content,
    reveal_option,
    text_or_stdin,
)
from quarterdeck.cli.output import (
    ago,
    print_json,
    print_message,
    print_table,
    print_text,
    safe_line,
)
from quarterdeck.cli.permissions import (
    POLICIES,
    cost_limit_option,
    dollars_of,
    remove_rule_option,
    rule_options,
    rules_of,
    shown_rules,
)
from quarterdeck.wire.permissions import PushPolicy, cost_limit_words

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environment_parts import (
        EnvironmentFile,
        EnvironmentHook,
        EnvironmentMcp,
        EnvironmentSkill,
        EnvironmentVariable,
    )
    from quarterdeck.wire.environments import Environment, WarmPool


_setting_options = combined(
    click.option("--description", metavar="TEXT"),
    click.option("--repository", metavar="NAME", help="Bind it to this repository."),
    click.option("--set", "repository_set", metavar="NAME", help="Bind it to this set."),
    click.option("--system-prompt", metavar="TEXT", help="- reads it from stdin."),
    click.option(
        "--push",
        type=click.Choice([choice.value for choice in PushPolicy]),
        help="What agents may push to the source; default: ask.",
    ),
    click.option(
        "--co-author",
        metavar="'NAME <ADDRESS>'",
        help="Named by a Co-authored-by line in commits of agents.",
    ),
    click.option("--preferences", metavar="TEXT", help="- reads them from stdin."),
    click.option(
        "--permissions",
        type=click.Choice(POLICIES),
        help="What agents may do without asking; default: ask.",
    ),
    rule_options,
    cost_limit_option,
)


@click.command(name="ls")
@click.option("--scope", type=click.Choice(["org", "user", "all"]), default="all")
@common_options
def ls(common: Common, scope: Literal["org", "user", "all"]) -> None:
    """List environments: shared and personal ones."""
    environments = with_client(common, lambda client: client.environments.list(scope=scope))
    if common.json:
        print_json(
            {"environments": [environment.model_dump(mode="json") for environment in environments]}
        )
        return
    print_table(
        ["NAME", "SCOPE", "VARIABLES", "FILES", "SKILLS", "MCP", "ID"], map(_row, environments)
    )


def _row(environment: "Environment") -> list[str]:
    scope = "global" if environment.is_global else "user" if environment.user_id else "org"
    counts = (
        environment.variable_count,
        environment.file_count,
        environment.skill_count,
        environment.mcp_count,
    )
    return [environment.name, scope, *map(str, counts), str(environment.id)]


@click.command(name="create")
@click.argument("name", metavar="NAME")
@click.option("--mine", is_flag=True, help="Create it as a personal one.")
@click.option(
    "--source", metavar="ENVIRONMENT", help="Inherit from this environment; implies --mine."
)
@_setting_options
@common_options
def create(
    common: Common,
    name: str,
    mine: bool,
    source: str | None,
    description: str | None,
    repository: str | None,
    repository_set: str | None,
    system_prompt: str | None,
    push: str | None,
    co_author: str | None,
    preferences: str | None,
    permissions: str | None,
    allow: tuple[str, ...],
    reject: tuple[str, ...],
    cost_limit: float | str | None,
) -> None:
    """Create an environment and print its id."""
    from quarterdeck.wire.environments import CreateEnvironment
    from quarterdeck.wire.permissions import PermissionPolicy

    body = CreateEnvironment(
        name=name,
        scope="user" if mine or source else "org",
        description=description,
        system_prompt=text_or_stdin(system_prompt),
        push=PushPolicy(push) if push else None,
        co_author=co_author,
        personal_preferences=text_or_stdin(preferences),
        permission_policy=PermissionPolicy(permissions) if permissions else None,
        permission_rules=rules_of(allow, reject) or None,
        cost_limit=None if cost_limit is None else dollars_of(cost_limit),
    )

    async def make(client: "Client") -> "Environment":
        if repository is not None:
            body.repository_id = await find_repository(client, repository)
        if repository_set is not None:
            body.repository_set_id = await find_repository_set(client, repository_set)
        if source is not None:
            body.source_environment_id = (await find_environment(client, source)).id
        return await client.environments.create(body)

    created = with_client(common, make)
    if common.json:
        print_json({"environment": created.model_dump(mode="json")})
    else:
        print_text(str(created.id))


CLEARABLE = {
    "description": "description",
    "repository": "repository_id",
    "set": "repository_set_id",
    "system-prompt": "system_prompt",
    "push": "push",
    "co-author": "co_author",
    "preferences": "personal_preferences",
    "permissions": "permission_policy",
    "rules": "permission_rules",
    "cost-limit": "cost_limit",
}


@click.command(name="edit")
@environment_argument
@click.option("--name", metavar="NAME")
@_setting_options
@remove_rule_option
@click.option("--clear", type=click.Choice(list(CLEARABLE)), multiple=True, help="Clear it.")
@common_options
def edit(
    common: Common,
    environment: str,
    name: str | None,
    description: str | None,
    repository: str | None,
    repository_set: str | None,
    system_prompt: str | None,
    push: str | None,
    co_author: str | None,
    preferences: str | None,
    permissions: str | None,
    allow: tuple[str, ...],
    reject: tuple[str, ...],
    cost_limit: float | str | None,
    remove_rule: tuple[str, ...],
    clear: tuple[str, ...],
) -> None:
    """Change the given settings of an environment."""
    from quarterdeck.wire.environments import ChangeEnvironment

    texts = {
        "name": name,
        "description": description,
        "system_prompt": _read(system_prompt),
        "push": push,
        "co_author": co_author,
        "personal_preferences": _read(preferences),
        "permission_policy": permissions,
        "cost_limit": None if cost_limit is None else dollars_of(cost_limit),
    }
    fields: dict[str, Any] = dict.fromkeys(CLEARABLE[cleared] for cleared in clear)
    fields |= {field: text for field, text in texts.items() if text is not None}
    rules = rules_of(allow, reject)
    others = (repository, repository_set, rules or None, remove_rule or None)
    if not fields and all(other is None for other in others):
        raise UsageError("Give at least one option to change.", "See: qd env edit --help.")

    async def change(client: "Client") -> "Environment":
        known = await find_environment(client, environment)
        # Binding to one removes the binding to the other.
        if repository is not None:
            bound = await find_repository(client, repository)
            fields.update(repository_id=bound, repository_set_id=None)
        if repository_set is not None:
            bound = await find_repository_set(client, repository_set)
            fields.update(repository_set_id=bound, repository_id=None)
        if rules or remove_rule:
            kept = [] if "rules" in clear else known.permission_rules
            kept = [rule for rule in kept if rule.pattern not in remove_rule and rule not in rules]
            fields["permission_rules"] = [*kept, *rules]
        return await client.environments.change(known.id, ChangeEnvironment(**fields))

    changed = with_client(common, change)
    if common.json:
        print_json({"environment": changed.model_dump(mode="json")})
    else:
        print_message(f"{changed.name} is changed.")


def _read(given: str | None) -> str | None:
    """Return the text as given, or stdin for `-`.

    Raises:
        UsageError: stdin is empty.
    """
    if given != "-":
        return given
    return require_content(text_or_stdin(given), False, "Remove a text with --clear.")


@click.command(name="rm")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.argument(
    "environments",
    metavar="ENVIRONMENT...",
    nargs=-1,
    required=True,
    shell_complete=complete_environment,
)
@common_options
def rm(common: Common, environments: tuple[str, ...], yes: bool) -> None:
    """Delete environments with their contents; refused while replicas use one."""

    async def find(client: "Client") -> dict[UUID, str]:
        return {(await find_environment(client, wanted)).id: wanted for wanted in environments}

    remove_all(
        common,
        find,
        lambda client, id: client.environments.delete(id),
        with_what="parts",
        ask=not yes,
    )


@dataclass(frozen=True)
class _Contents:
    """An environment with its own parts."""

    environment: "Environment"
    names: dict[str, str]
    """Names of its `repository`, `set` and `source`."""
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
def show(common: Common, environment: str, reveal: bool) -> None:
    """Show an environment with its own parts. Values are masked unless --reveal is given."""

    async def read(client: "Client") -> _Contents:
        known = await find_environment(client, environment)
        return _Contents(
            known,
            {} if common.json else await _names(client, known),
            await client.variables.list(known.id),
            await client.environment_files.list(known.id),
            await client.skills.list(known.id),
            await client.mcps.list(known.id),
            (await client.environment_hooks.warm(known.id)).warm_hook,
            await client.environment_hooks.start(known.id),
        )

    whole = with_client(common, read)
    if common.json:
        print_json(_json(whole, reveal))
        return
    for line in _lines(whole, reveal):
        print_text(line)


async def _names(client: "Client", environment: "Environment") -> dict[str, str]:
    """Return the names of the environment's repository, set and source; an id where the name is unknown."""
    names: dict[str, str] = {}
    if environment.repository_id is not None:
        known = {repository.id: repository.name for repository in await client.repositories.list()}
        names["repository"] = known.get(environment.repository_id, str(environment.repository_id))
    if environment.repository_set_id is not None:
        known = {
            repository_set.id: repository_set.name
            for repository_set in await client.repository_sets.list()
        }
        names["set"] = known.get(environment.repository_set_id, str(environment.repository_set_id))
    if environment.source_environment_id is not None:
        names["source"] = (await client.environments.get(environment.source_environment_id)).name
    return names


def _json(whole: _Contents, reveal: bool) -> dict[str, Any]:
    def dumped(model: Any) -> Any:
        return None if model is None else model.model_dump(mode="json")

    return {
        "environment": dumped(whole.environment),
        "environment_variables": [
            {**dumped(variable), "value": masked(variable.value, reveal)}
            for variable in whole.variables
        ],
        "environment_files": [dumped(file) for file in whole.files],
        "environment_skills": [dumped(skill) for skill in whole.skills],
        "environment_mcps": [
            {**dumped(mcp), "config": masked_config(mcp.config, reveal)} for mcp in whole.mcps
        ],
        "warm_hook": dumped(whole.warm_hook),
        "start_hook": dumped(whole.start_hook),
    }


def _lines(whole: _Contents, reveal: bool) -> Iterator[str]:
    record = whole.environment
    yield f"name           {safe_line(record.name)}"
    yield f"id             {record.id}"
    for label, value in (
        ("description", record.description),
        *whole.names.items(),
        ("system prompt", record.system_prompt),
        ("push", record.push),
        ("co-author", record.co_author),
        ("preferences", record.personal_preferences),
        ("permissions", record.permission_policy),
        ("rules", shown_rules(record.permission_rules)),
        ("cost limit", cost_limit_words(record.cost_limit)),
    ):
        if value:
            yield f"{label:<14} {safe_line(str(value))}"
    for variable in whole.variables:
        yield f"variable       {variable.key}={safe_line(masked(variable.value, reveal))}"
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


SWITCHES = {"on": True, "off": False}


@click.command(name="pool")
@environment_argument
@click.argument("switch", type=click.Choice(list(SWITCHES)), required=False)
@common_options
def pool(common: Common, environment: str, switch: str | None) -> None:
    """Show an environment's warm pool, or turn it on or off."""

    async def run(client: "Client", of: UUID) -> "WarmPool | None":
        if switch is None:
            return (await client.environment_hooks.warm(of)).warm_pool
        return await client.warm_pools.switch(of, SWITCHES[switch])

    pool = with_environment(common, environment, run)
    if common.json:
        print_json({"warm_pool": pool and pool.model_dump(mode="json")})
    elif pool is None:
        print_message("No warm pool.")
    else:
        _print_pool(pool)


def _print_pool(pool: "WarmPool") -> None:
    print_message(f"The warm pool is {'on' if pool.enabled else 'off'}.")
    print_message(
        f"{pool.ready_count} of {pool.target_size} replicas are ready, {pool.warming_count} are "
        f"being prepared, {pool.stale_count} are being replaced."
    )
    if pool.last_failure_reason:
        when = f" {ago(pool.last_failure_at)} ago" if pool.last_failure_at else ""
        print_message(f"Last failure{when}: {pool.last_failure_reason}")
