"""Options, arguments and inputs that several verbs share."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import click

from quarterdeck.cli.errors import UsageError


@dataclass
class Common:
    """The options of every verb."""

    json: bool = False
    profile: str | None = None


def _store_option(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    if value and param.name:
        setattr(ctx.ensure_object(Common), param.name, value)
    return value


json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_store_option,
    help="Print JSON on stdout.",
)
profile_option = click.option(
    "--profile",
    metavar="NAME",
    expose_value=False,
    callback=_store_option,
    help="Use a service named in the configuration file.",
)


def common_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--json` and `--profile`; the function's first argument is the `Common`."""
    return json_option(profile_option(click.pass_obj(function)))


def combined(*options: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options, in the order of the help."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def _completer(kind: str) -> Callable[..., Any]:
    """Return a completer for names; its module is imported on use."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        from quarterdeck.cli import completion

        return getattr(completion, f"{kind}_names")(ctx, param, incomplete)

    return complete


complete_environment = _completer("environment")
complete_automation = _completer("automation")
_complete_replica = _completer("replica")

replica_argument = click.argument("replica", metavar="REPLICA", shell_complete=_complete_replica)
"""A name, an id, or a prefix of one that matches only one replica."""

replicas_argument = click.argument(
    "replicas",
    metavar="REPLICA...",
    nargs=-1,
    required=True,
    shell_complete=_complete_replica,
)
"""Several replicas."""

chat_option = click.option("--chat", metavar="CHAT", help="Chat id or title (default: the first).")


def environment_option(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--env`, which names an environment."""
    return click.option(
        "--env",
        "environment",
        metavar="NAME|ID",
        help=help,
        shell_complete=complete_environment,
    )


empty_option = click.option("--empty", is_flag=True, help="Allow an empty file or stdin.")


def read_text(source: str | None) -> str:
    """Return the text of a file, or of stdin for None or `-`.

    Raises:
        UsageError: it cannot be read, or is not text.
    """
    try:
        if source is None or source == "-":
            return sys.stdin.read()
        return Path(source).read_text(encoding="utf-8")
    except OSError as e:
        raise UsageError(f"{source} cannot be read: {e.strerror}.") from e
    except UnicodeDecodeError as e:
        raise UsageError(f"{source or 'stdin'} is not UTF-8 text.") from e


def require_content(text: str, empty: bool, step: str = "To allow this, add --empty.") -> str:
    """Return a text that replaces another one. A command that failed may have printed nothing.

    Raises:
        UsageError: it is empty, and `empty` is false.
    """
    if not text and not empty:
        raise UsageError("The input is empty; nothing was changed.", step)
    return text


@overload
def text_or_stdin(given: str) -> str: ...
@overload
def text_or_stdin(given: str | None) -> str | None: ...
def text_or_stdin(given: str | None) -> str | None:
    """Return the text as given, or stdin for `-`."""
    return sys.stdin.read() if given == "-" else given


def read_secret(prompt: str) -> str:
    """Read a secret: from a prompt without echo, or stdin without its final newline."""
    if sys.stdin.isatty():
        return click.prompt(prompt, hide_input=True, err=True)
    text = read_text(None)
    return text.removesuffix("\n").removesuffix("\r")


MASK = "********"

reveal_option = click.option("--reveal", is_flag=True, help="Show secret values.")


def masked(value: str, reveal: bool) -> str:
    """Return the value, or the mask."""
    return value if reveal else MASK


def masked_config(config: Mapping[str, Any], reveal: bool) -> dict[str, Any]:
    """Return an MCP server's configuration, with the values of variables and headers masked."""
    hidden = dict(config)
    for field in ("env", "headers"):
        if not reveal and isinstance(hidden.get(field), dict):
            hidden[field] = dict.fromkeys(hidden[field], MASK)
    return hidden
