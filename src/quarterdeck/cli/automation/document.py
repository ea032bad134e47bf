"""An automation as TOML: what a file may say, and how an automation is written as one.

The keys are the contract's, but `environment` and a trigger's `repositories` take names.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from quarterdeck.cli.errors import UsageFault

EMPTY: dict[str, Any] = {
    "description": "",
    "agent_provider": "builtin",
    "model": "",
    "thinking_level": "medium",
    "goal_mode": False,
    "fast_mode": False,
    "debounce_seconds": 0,
    "workspace_auto_stop_minutes": 60,
    "workspace_size": "small",
}
"""Settings that may be left out, each with what a line for it could be."""

KEYS = (
    "name",
    "description",
    "environment",
    "enabled",
    "prompt",
    "agent_provider",
    "model",
    "thinking_level",
    "plan_mode",
    "goal_mode",
    "fast_mode",
    "debounce_seconds",
    "workspace_lifecycle_policy",
    "workspace_auto_stop_minutes",
    "workspace_size",
    "config",
    "triggers",
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def read_document(text: str, source: str) -> dict[str, Any]:
    """The settings in a document. `source` is what a person calls it.

    Raises:
        UsageFault: it is no TOML, has a key that is none, or a value that cannot be looked into.
    """
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise UsageFault(f"{source} is no TOML: {e}.") from e
    for key in found:
        if key not in (*KEYS, "scope"):
            raise UsageFault(f"{source}: {key}: there is no such setting.{_meant(key)}")
    wrong = next(_misshapen(found), None)
    if wrong is not None:
        raise UsageFault(f"{source}: {wrong}")
    return found


def _misshapen(found: Mapping[str, Any]) -> Iterator[str]:
    """What would be in the way of names and options; the rest is looked at as a whole."""
    if not isinstance(found.get("environment", ""), str):
        yield "environment: a name or an id."
    if not isinstance(found.get("config", {}), dict):
        yield "config: a table."
    triggers = found.get("triggers", [])
    if not isinstance(triggers, list):
        yield "triggers: tables."
        return
    for trigger in cast("list[Any]", triggers):
        if not isinstance(trigger, dict):
            yield "triggers: tables."
            return
        config = cast("dict[str, Any]", trigger).get("config", {})
        if not isinstance(config, dict):
            yield "triggers: config: a table."
            return
        if not isinstance(cast("dict[str, Any]", config).get("repositories", []), list):
            yield "triggers: repositories: a list of names."


def _meant(key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, KEYS, n=1)
    return f" Did you mean {near[0]}?" if near else ""


def write_document(settings: Mapping[str, Any]) -> str:
    """Settings as TOML; what is not set stands there as a comment."""
    return "\n".join(_lines(settings)) + "\n"


def _lines(settings: Mapping[str, Any]) -> Iterator[str]:
    yield "# What begins with # is not set; nor is what is left out."
    for key in KEYS:
        value = settings.get(key)
        if key == "triggers":
            for trigger in cast("list[dict[str, Any]]", value or []):
                yield "\n[[triggers]]"
                yield from (f"{_key(name)} = {toml(one)}" for name, one in trigger.items())
        elif value is not None:
            yield f"{key} = {toml(value)}"
        elif key in EMPTY:
            yield f"# {key} = {toml(EMPTY[key])}"


def toml(value: Any) -> str:
    """A value as TOML; entries of tables that are null are left out, as it has no null."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(map(toml, cast('list[Any]', value)))}]"
        case dict():
            entries = cast("dict[str, Any]", value).items()
            return f"{{{', '.join(f'{_key(k)} = {toml(v)}' for k, v in entries if v is not None)}}}"
        case _:
            return repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _text(value: str) -> str:
    if "\n" not in value:
        return _quoted(value)
    inner = _escaped(value).replace('"""', '""\\"')
    return f'"""\n{inner[:-1]}\\""""' if inner.endswith('"') else f'"""\n{inner}"""'


def _quoted(value: str) -> str:
    inner = _escaped(value).replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'


def _escaped(value: str) -> str:
    plain = value.replace("\\", "\\\\")
    return _CONTROL.sub(lambda one: f"\\u{ord(one[0]):04x}", plain)
