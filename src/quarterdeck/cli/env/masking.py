"""Secrets of environments are shown only when that was asked for."""

from collections.abc import Mapping
from typing import Any

import click

MASK = "********"

reveal_option = click.option("--reveal", is_flag=True, help="Show values as they are.")


def shown(value: str, reveal: bool) -> str:
    """The value, or as much of it as may be shown."""
    return value if reveal else MASK


def shown_config(config: Mapping[str, Any], reveal: bool) -> dict[str, Any]:
    """An MCP server's configuration; what variables and headers hold is masked."""
    hidden = dict(config)
    for field in ("env", "headers"):
        if not reveal and isinstance(hidden.get(field), dict):
            hidden[field] = dict.fromkeys(hidden[field], MASK)
    return hidden
