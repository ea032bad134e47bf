"""`qd completion`, and the names that a shell completes.

A shell runs `qd` for each completion. Names come from the service, within a time limit: it is not
started, no key is prompted for, and nothing is printed when it does not answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from quarterdeck.cli import COMPLETION
from quarterdeck.cli.errors import CliError
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import print_safe, safe_line

if TYPE_CHECKING:
    from quarterdeck.client import Client


LONGEST = 1.0
"""Time limit for reading names."""
SHELLS = ("bash", "zsh", "fish")

Names = dict[str, str]
"""Names by their ids."""


@click.command(name="completion")
@click.argument("shell", type=click.Choice(SHELLS))
@common_options
def completion(common: Common, shell: str) -> None:
    """Print a script that completes commands, options and names.

    \b
    bash: echo 'source <(qd completion bash)' >>~/.bashrc
    zsh:  echo 'source <(qd completion zsh)' >>~/.zshrc, after compinit
    fish: qd completion fish >~/.config/fish/completions/qd.fish
    """  # noqa: D301 click reads the control character
    from quarterdeck.cli.program import program

    completer = get_completion_class(shell)
    assert completer is not None, shell
    print_safe(completer(program, {}, "qd", COMPLETION).source())


def replica_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a replica."""

    async def read(client: "Client") -> Names:
        return {str(replica.id): replica.name async for replica in client.replicas.all()}

    return _complete(ctx, param, incomplete, read)


def environment_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of an environment."""

    async def read(client: "Client") -> Names:
        return {
            str(environment.id): environment.name
            for environment in await client.environments.list(scope="all")
        }

    return _complete(ctx, param, incomplete, read)


def automation_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of an automation."""

    async def read(client: "Client") -> Names:
        return {
            str(automation.id): automation.name async for automation in client.automations.all()
        }

    return _complete(ctx, param, incomplete, read)


def _complete(
    ctx: click.Context,
    param: click.Parameter,
    incomplete: str,
    read: "Callable[[Client], Awaitable[Names]]",
) -> list[CompletionItem]:
    names = _read(ctx.find_object(Common) or Common(), read)
    given = ctx.params.get(param.name or "") or ()
    # The shell puts a word on its line as it is, so a name that means more there is offered by its id.
    labels = {name if _is_plain(name) else id: safe_line(name) for id, name in names.items()}
    return [
        CompletionItem(word, help=None if name == word else name)
        for word, name in sorted(labels.items(), key=lambda pair: pair[1])
        if word.startswith(incomplete) and word not in given
    ]


def _is_plain(name: str) -> bool:
    """Return whether a name is one word to every shell and not an option; zsh expands a leading `=`."""
    return all(c.isalnum() or c in "_-./:@%+,=" for c in name) and name[:1] not in ("", "-", "=")


def _read(common: Common, read: "Callable[[Client], Awaitable[Names]]") -> Names:
    from quarterdeck.cli.clients import run_with
    from quarterdeck.cli.target import find_target

    async def briefly(client: "Client") -> Names:
        async with asyncio.timeout(LONGEST):
            return await read(client)

    try:
        target = find_target(common.profile, may_ask=False)
        from quarterdeck.client.errors import ClientError
    except CliError:
        return {}
    try:
        return run_with(target, briefly)
    except (CliError, ClientError, TimeoutError):
        return {}
