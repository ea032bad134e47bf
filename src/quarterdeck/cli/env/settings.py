"""Options of an environment's own settings, for making and for changing one."""

import sys
from collections.abc import Callable
from typing import Any

import click

STDIN = "-"


def setting_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what `create` and `edit` have in common."""
    for option in reversed(
        (
            click.option("--description", metavar="TEXT"),
            click.option("--repository", metavar="NAME", help="Bind it to this repository."),
            click.option("--set", "repository_set", metavar="NAME", help="Bind it to this set."),
            click.option("--system-prompt", metavar="TEXT", help="- reads it from stdin."),
            click.option("--preferences", metavar="TEXT", help="- reads them from stdin."),
        )
    ):
        function = option(function)
    return function


def text_of(given: str | None) -> str | None:
    """What was given, or what stdin holds."""
    return sys.stdin.read() if given == STDIN else given
