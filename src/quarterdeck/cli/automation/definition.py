"""`qd automation create` and `edit`."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from quarterdeck.cli.automation.automations import both_clocks
from quarterdeck.cli.automation.settings import (
    OPTIONAL,
    SettingOptions,
    merge_triggers,
    read_document,
    setting_options,
    write_document,
)
from quarterdeck.cli.clients import with_client
from quarterdeck.cli.errors import CliError, UsageError
from quarterdeck.cli.lookup import (
    automation_argument,
    find_automation,
    find_environment,
    find_repository,
)
from quarterdeck.cli.options import Common, common_options, read_text
from quarterdeck.cli.output import print_json, print_message, print_text
from quarterdeck.cli.repositories import find_repository_url
from quarterdeck.cli.target import find_target

if TYPE_CHECKING:
    from pydantic import BaseModel

    from quarterdeck.client import Client
    from quarterdeck.wire.automations import Automation


Body = TypeVar("Body", bound="BaseModel")


async def _with_ids(client: "Client", settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with ids instead of the names of environments and repositories.

    Raises:
        FailedError: there is no such environment or repository.
    """
    resolved = dict(settings)
    if "environment" in resolved:
        resolved["environment_id"] = (
            await find_environment(client, resolved.pop("environment"))
        ).id
    if "triggers" in resolved:
        resolved["triggers"] = [
            await _trigger_with_ids(client, trigger) for trigger in resolved["triggers"]
        ]
    return resolved


async def _trigger_with_ids(client: "Client", trigger: dict[str, Any]) -> dict[str, Any]:
    config = dict(trigger.get("config", {}))
    if "repositories" not in config:
        return trigger
    names = config.pop("repositories")
    ids = [await find_repository(client, str(name)) for name in names]
    return {**trigger, "config": {**config, "repository_ids": ids}}


GIVEN_BY = {
    "name": "Give it as an argument, or in --file.",
    "prompt": "Give it with --prompt or --prompt-file, or in --file.",
}
"""How what an automation needs is given."""


def _validated(model: type[Body], settings: Mapping[str, Any], source: str | None) -> Body:
    """Return a request body.

    Raises:
        UsageError: a setting is missing or invalid; the message names it.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(settings))
    except ValidationError as e:
        from quarterdeck.wire.base import first_error

        parts = e.errors(include_url=False, include_input=False)[0]["loc"]
        place = ".".join(map(str, _without_trigger_type(parts)))
        message = f"{first_error(e, place.replace('environment_id', 'environment'))}."
        step = GIVEN_BY.get(place) if e.errors()[0]["type"] == "missing" else None
        raise UsageError(f"{source}: {message}" if source else message, step) from e


def _without_trigger_type(parts: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return an error's location without the type of a trigger, which follows its number."""
    return parts[:2] + parts[3:] if parts[:1] == ("triggers",) and len(parts) > 2 else parts


async def _settings_of(client: "Client", automation: "Automation") -> dict[str, Any]:
    """Return an automation as settings, with names instead of ids."""
    settings = automation.model_dump(mode="json")
    for environment in await client.environments.list(scope="all"):
        if environment.id == automation.environment_id:
            settings["environment"] = environment.name
    settings.setdefault("environment", str(automation.environment_id))
    names = {repository.id: repository.name for repository in await client.repositories.list()}
    settings["triggers"] = [_trigger_with_names(trigger, names) for trigger in settings["triggers"]]
    return settings


def _trigger_with_names(trigger: dict[str, Any], names: "dict[UUID, str]") -> dict[str, Any]:
    config = dict(trigger["config"])
    ids = config.pop("repository_ids", None)
    if ids is not None:
        by_text = {str(id): name for id, name in names.items()}
        config["repositories"] = [
            by_text.get(repository_id, repository_id) for repository_id in ids
        ]
    return {**trigger, "config": config}


@click.command(name="create")
@click.argument("name", metavar="[NAME]", required=False)
@click.option(
    "--repo",
    metavar="PATH|URL",
    help="Repository without --env; default: that of the current directory.",
)
@click.option("--personal", is_flag=True, help="Create it as a personal one.")
@click.option("--disabled", is_flag=True, help="Create it turned off.")
@setting_options
@common_options
def create(
    common: Common,
    name: str | None,
    repo: str | None,
    personal: bool,
    disabled: bool,
    **options: Any,
) -> None:
    """Create an automation and print its id. Options override --file."""
    from quarterdeck.store.automation_draft import check_name_is_free, webhook_call
    from quarterdeck.store.creation import CreationRequest, environment_for, usual_agent
    from quarterdeck.wire.automations import CreateAutomation

    given = SettingOptions(**options)
    settings = _read_settings(given, name)
    if repo and "environment" in settings:
        raise UsageError("Give one of --repo and an environment.")
    target = find_target(common.profile)
    # Validate everything before anything is created for it.
    _validated(CreateAutomation, settings | {"environment_id": UUID(int=0)}, given.file)
    url = None if "environment" in settings else find_repository_url(repo, target)
    if personal:
        settings["scope"] = "user"
    if disabled:
        settings["enabled"] = False

    async def make(client: "Client") -> "tuple[Automation, str]":
        await check_name_is_free(client, settings["name"])
        resolved = await _with_ids(client, settings)
        if "environment_id" not in resolved:
            resolved["environment_id"], _ = await environment_for(
                client, CreationRequest(repository_url=url)
            )
        if "agent_provider" not in resolved:
            resolved["agent_provider"] = usual_agent(await client.agents.list())
        body = _validated(CreateAutomation, resolved, given.file)
        return await client.automations.create(body), client.connection.endpoint

    automation, endpoint = with_client(common, make)
    if common.json:
        print_json({"automation": automation})
        return
    print_text(str(automation.id))
    if automation.cron_next_fire_at is not None:
        print_message(
            f"Next run: {both_clocks(automation.cron_next_fire_at, automation.cron_timezone)}."
        )
    if call := webhook_call(automation, endpoint):
        print_message(f"Call its webhook with: {call}")
    for notice in automation.notices:
        print_message(notice)


def _read_settings(given: SettingOptions, name: str | None) -> dict[str, Any]:
    settings = {} if given.file is None else read_document(read_text(given.file), given.file)
    settings |= given.settings()
    if name is not None:
        settings["name"] = name
    triggers = merge_triggers(settings.get("triggers", []), given)
    if triggers is not None:
        settings["triggers"] = triggers
    if config := given.config():
        settings["config"] = {**settings.get("config", {}), **config}
    return settings


_SOURCE = "What you wrote"
_CLEARED: dict[str, Any] = {**dict.fromkeys(OPTIONAL), "triggers": [], "config": {}}
"""Values of settings that are left out; others cannot be left out."""


def _edit_in_editor(common: Common, automation: str) -> "Automation | None":
    """Open the automation in `$VISUAL` or `$EDITOR`; send the changes, return None without any.

    What was written and cannot be used is kept in a file.
    """

    async def read(client: "Client") -> "tuple[Automation, dict[str, Any]]":
        record = await find_automation(client, automation)
        return record, await _settings_of(client, record)

    record, settings = with_client(common, read)
    before = write_document(settings)
    after = click.edit(before, extension=".toml")
    if after is None or after == before:
        return None
    try:
        return _send(common, record, before, after)
    except Exception as e:
        _save_draft(after, e)
        raise


def _send(common: Common, record: "Automation", before: str, after: str) -> "Automation | None":
    from quarterdeck.store.automation_draft import check_name_is_free
    from quarterdeck.wire.automations import ChangeAutomation

    changes = changed_settings(read_document(before, _SOURCE), read_document(after, _SOURCE))
    if not changes:
        return None

    async def change(client: "Client") -> "Automation":
        await check_name_is_free(client, changes.get("name"), record)
        body = _validated(ChangeAutomation, await _with_ids(client, changes), _SOURCE)
        return await client.automations.change(record.id, body)

    return with_client(common, change)


def changed_settings(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the second document that differ from the first.

    Raises:
        UsageError: a setting that cannot be left out was.
    """
    changes = {key: value for key, value in after.items() if before.get(key) != value}
    if "scope" in changes:
        raise UsageError("scope: cannot be changed.")
    for key in before.keys() - after.keys():
        if key not in _CLEARED:
            raise UsageError(f"{key}: required.")
        changes[key] = _CLEARED[key]
    return changes


def _save_draft(text: str, error: Exception) -> None:
    from quarterdeck.client.errors import ClientError

    if not isinstance(error, CliError | ClientError):
        return
    descriptor, name = mkstemp(prefix="qd-automation-", suffix=".toml")
    os.close(descriptor)
    Path(name).write_text(text, encoding="utf-8")
    print_message(f"Your edit is kept in {name}; pass it with --file.")


CLEARABLE = {
    "description": "description",
    "agent": "agent_provider",
    "model": "model",
    "debounce": "debounce_seconds",
    "debounce-max": "debounce_max_seconds",
    "max-minutes": "max_minutes",
    "concurrency": "concurrency",
    "webhook-secret": "webhook_secret",
    "stop-after": "workspace_auto_stop_minutes",
    "size": "workspace_size",
}


@click.command(name="edit")
@automation_argument
@click.option("--name", metavar="NAME")
@setting_options
@click.option(
    "--without",
    metavar="TRIGGER",
    multiple=True,
    help="Remove a trigger: cron, webhook, or an event.",
)
@click.option("--clear", type=click.Choice(list(CLEARABLE)), multiple=True, help="Clear it.")
@common_options
def edit(
    common: Common,
    automation: str,
    name: str | None,
    without: tuple[str, ...],
    clear: tuple[str, ...],
    **options: Any,
) -> None:
    """Edit an automation by option, or all of it in $EDITOR.

    A file changes the settings that it names. In the editor, a line that is left out clears its
    setting.
    """
    given = SettingOptions(**options)
    settings: dict[str, Any] = dict.fromkeys(CLEARABLE[cleared] for cleared in clear)
    if given.file is not None:
        settings |= read_document(read_text(given.file), given.file)
    settings |= given.settings()
    if name is not None:
        settings["name"] = name
    says_more = bool(given.config()) or _names_triggers(given, without)
    if not settings and not says_more:
        changed = _edit_in_editor(common, automation)
    else:
        changed = _change(common, automation, settings, given, without)
    if changed is None:
        print_message("No changes.")
    elif common.json:
        print_json({"automation": changed})
    else:
        print_message(f"{changed.name} is changed.")


def _names_triggers(given: SettingOptions, without: tuple[str, ...]) -> bool:
    """Return whether any option concerns triggers."""
    values = (given.cron, given.timezone, given.webhook, given.events, given.repositories, without)
    return any(values)


def _change(
    common: Common,
    automation: str,
    settings: dict[str, Any],
    given: SettingOptions,
    without: tuple[str, ...],
) -> "Automation":
    from quarterdeck.store.automation_draft import check_name_is_free
    from quarterdeck.wire.automations import ChangeAutomation

    async def change(client: "Client") -> "Automation":
        record = await find_automation(client, automation)
        _check_scope(settings, record)
        await check_name_is_free(client, settings.get("name"), record)
        old_triggers = [trigger.model_dump(mode="json") for trigger in record.triggers]
        triggers = merge_triggers(settings.get("triggers", old_triggers), given, without)
        wanted = settings if triggers is None else {**settings, "triggers": triggers}
        if config := given.config():
            wanted = {**wanted, "config": {**settings.get("config", record.config), **config}}
        body = _validated(ChangeAutomation, await _with_ids(client, wanted), given.file)
        return await client.automations.change(record.id, body)

    return with_client(common, change)


def _check_scope(settings: dict[str, Any], automation: "Automation") -> None:
    """Remove the scope: a file may contain it, but it cannot be changed."""
    scope = settings.pop("scope", None)
    if scope not in (None, "user" if automation.user_id else "org"):
        raise UsageError("scope: cannot be changed.", "Create another automation.")
