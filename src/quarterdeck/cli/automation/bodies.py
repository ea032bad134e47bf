"""Settings as a person gives them, made into what the service is asked for."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from quarterdeck.cli.env.find import find_environment, find_repository
from quarterdeck.cli.errors import UsageFault

if TYPE_CHECKING:
    from uuid import UUID

    from pydantic import BaseModel

    from quarterdeck.client import Client
    from quarterdeck.wire.automations import Automation

Body = TypeVar("Body", bound="BaseModel")


async def with_ids(client: "Client", settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with ids in the place of the names of environments and repositories.

    Raises:
        NotDone: there is no such environment or repository.
    """
    found = dict(settings)
    if "environment" in found:
        found["environment_id"] = (await find_environment(client, found.pop("environment"))).id
    if "triggers" in found:
        found["triggers"] = [await _trigger_with_ids(client, one) for one in found["triggers"]]
    return found


async def _trigger_with_ids(client: "Client", trigger: dict[str, Any]) -> dict[str, Any]:
    config = dict(trigger.get("config", {}))
    if "repositories" not in config:
        return trigger
    names = config.pop("repositories")
    ids = [await find_repository(client, str(one)) for one in names]
    return {**trigger, "config": {**config, "repository_ids": ids}}


def checked(model: type[Body], settings: Mapping[str, Any], source: str | None) -> Body:
    """A request body.

    Raises:
        UsageFault: a setting is missing or cannot be so; the message names it.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(settings))
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, _place(first["loc"])))
        told = f"{place.replace('environment_id', 'environment')}: {first['msg']}."
        raise UsageFault(f"{source}: {told}" if source else told) from e


def _place(parts: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Without the type of a trigger, which stands behind its number."""
    return parts[:2] + parts[3:] if parts[:1] == ("triggers",) and len(parts) > 2 else parts


async def settings_of(client: "Client", automation: "Automation") -> dict[str, Any]:
    """An automation as a person would give it, with names in the place of ids."""
    found = automation.model_dump(mode="json")
    for one in await client.environments.list(scope="all"):
        if one.id == automation.environment_id:
            found["environment"] = one.name
    found.setdefault("environment", str(automation.environment_id))
    names = {one.id: one.name for one in await client.repositories.list()}
    found["triggers"] = [_trigger_with_names(one, names) for one in found["triggers"]]
    return found


def _trigger_with_names(trigger: dict[str, Any], names: "dict[UUID, str]") -> dict[str, Any]:
    config = dict(trigger["config"])
    ids = config.pop("repository_ids", None)
    if ids is not None:
        by_text = {str(id): name for id, name in names.items()}
        config["repositories"] = [by_text.get(one, one) for one in ids]
    return {**trigger, "config": config}
