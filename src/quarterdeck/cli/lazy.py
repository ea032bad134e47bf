"""A group of verbs whose modules are imported on use, not for the list."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True)
class Verb:
    """The place of a verb: `attribute` of `module`. `summary` is its line in the list."""

    module: str
    summary: str
    attribute: str


class LazyGroup(click.Group):
    """Imports `Verb.module` on use; lists verbs in the order given."""

    def __init__(self, *args: Any, verbs: Mapping[str, Verb], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return None
        command: click.Command = getattr(import_module(verb.module), verb.attribute)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete verbs without importing them, and the group's own options."""
        from click.shell_completion import CompletionItem

        verbs = [
            CompletionItem(name, help=verb.summary)
            for name, verb in self.verbs.items()
            if name.startswith(incomplete)
        ]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.summary) for name, verb in self.verbs.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as e:
            close = _closest(args[0], self.verbs)
            if close:
                message = f"There is no command {args[0]!r}. Did you mean {close}?"
                raise click.UsageError(message, ctx) from e
            raise


def _closest(word: str, names: Mapping[str, Verb]) -> str | None:
    from difflib import get_close_matches  # only when a verb was mistyped

    matches = get_close_matches(word, names, n=1)
    return matches[0] if matches else None
