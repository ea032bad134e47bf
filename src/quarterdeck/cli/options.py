"""Options that every verb takes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click


@dataclass
class Common:
    """What was asked for beside the verb itself."""

    json: bool = False
    profile: str | None = None


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    if value and param.name:
        setattr(ctx.ensure_object(Common), param.name, value)
    return value


json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_keep,
    help="Print JSON on stdout.",
)
profile_option = click.option(
    "--profile",
    metavar="NAME",
    expose_value=False,
    callback=_keep,
    help="Use a service named in the configuration file.",
)


def common_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--json` and `--profile`; the function's first argument is the `Common`."""
    return json_option(profile_option(click.pass_obj(function)))


replica_argument = click.argument("replica", metavar="REPLICA")
"""A name, an id, or a prefix of one that fits one replica only."""
