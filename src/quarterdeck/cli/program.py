"""The commands, imported on use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from quarterdeck import __version__
from quarterdeck.cli.errors import Exit, UsageError
from quarterdeck.cli.exits import guarded
from quarterdeck.cli.options import Common, json_option, profile_option

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
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.summary) for name, verb in self.verbs.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as e:
            if args[0].startswith("-"):
                raise
            close = _closest(args[0], self.verbs) or self._of_replicas(ctx, args[0])
            help = f" Did you mean {close}?" if close else ""
            if not close and len(self.verbs) <= MOST_LISTED:
                help = f" Its commands are {', '.join(self.verbs)}."
            raise click.UsageError(f"There is no command {args[0]!r}.{help}", ctx) from e

    def _of_replicas(self, ctx: click.Context, word: str) -> str | None:
        """Return the command of replicas that a word without `replica` may mean."""
        replicas = self.get_command(ctx, REPLICAS)
        close = _closest(word, replicas.verbs) if isinstance(replicas, LazyGroup) else None
        return close and f"{REPLICAS} {close}"


REPLICAS = "replica"
MOST_LISTED = 10
"""Commands of a group that are listed in an error."""
OTHER_WORDS = {
    "answer": "respond",
    "delete": "rm",
    "list": "ls",
    "log": "history",
    "new": "create",
    "remove": "rm",
    "run": "exec",
    "stop": "interrupt",
}
"""What other programs call a command."""


def _closest(word: str, names: Mapping[str, Verb]) -> str | None:
    from difflib import get_close_matches  # only when a verb was mistyped

    other = OTHER_WORDS.get(word)
    return other if other in names else next(iter(get_close_matches(word, names, n=1)), None)


VERBS = {
    "serve": Verb("quarterdeck.cli.serve", "Run the service in the foreground.", "serve"),
    "status": Verb(
        "quarterdeck.cli.serve", "Show whether the service answers, and where.", "status"
    ),
    "stop": Verb("quarterdeck.cli.serve", "Stop the embedded service; engines go on.", "stop"),
    "doctor": Verb("quarterdeck.cli.doctor", "Check this machine and suggest fixes.", "doctor"),
    "config": Verb("quarterdeck.cli.config", "Show and change the configuration file.", "config"),
    "completion": Verb(
        "quarterdeck.cli.completion", "Print a shell's completion script.", "completion"
    ),
    "auth": Verb("quarterdeck.cli.auth", "Log in, print keys, approve devices.", "auth"),
    "keys": Verb("quarterdeck.cli.account", "Create, list and revoke API keys.", "keys"),
    "notify": Verb("quarterdeck.cli.account", "Configure notifications.", "notify"),
    "agents": Verb("quarterdeck.cli.agents", "List coding agents; install one.", "agents"),
    "credentials": Verb(
        "quarterdeck.cli.account", "Manage agents' provider credentials.", "credentials"
    ),
    "repo": Verb(
        "quarterdeck.cli.repositories", "Connect repositories, and group them in sets.", "repo"
    ),
    "env": Verb("quarterdeck.cli.env", "Manage environments.", "env"),
    "automation": Verb(
        "quarterdeck.cli.automation", "Run agents on schedules and events.", "automation"
    ),
    "replica": Verb("quarterdeck.cli.replica", "Create and manage replicas.", "replica"),
    "search": Verb("quarterdeck.cli.search", "Search in the chats of all replicas.", "search"),
    "image": Verb("quarterdeck.cli.image", "Build the image of replicas in containers.", "image"),
    "mcp": Verb("quarterdeck.cli.mcp", "Serve operations on replicas to an agent.", "mcp"),
    "check": Verb("quarterdeck.cli.inside", "Inside a replica: report a check's verdict.", "check"),
    "preview": Verb("quarterdeck.cli.inside", "Inside a replica: expose a port.", "preview"),
}

ALIASES = {"environment": "env"}
"""Longer names of commands and options, which work and are not listed."""
EPILOG = """\b
Exit codes: 0 done, 1 refused or failed, 2 usage, 3 unreachable, 130 interrupted.
QD_URL and QD_API_KEY choose another service; QUARTERDECK_HOME moves everything."""


def _normalized_name(name: str) -> str:
    return ALIASES.get(name, name)


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": _normalized_name,
    },
    epilog=EPILOG,
)
@click.version_option(__version__, prog_name="qd", message="%(prog)s %(version)s")
@json_option
@profile_option
@click.option(
    "--plain",
    is_flag=True,
    help="Open the cockpit as lines of text: for screen readers, any terminal, and pipes.",
)
@click.pass_context
def program(ctx: click.Context, plain: bool) -> None:
    """Run and supervise many coding agents. With no command, opens the cockpit."""
    if ctx.invoked_subcommand is not None:
        if plain:
            raise click.UsageError("--plain is an option of the cockpit: leave the command out.")
        return
    common = ctx.find_object(Common) or Common()
    if common.json:
        raise UsageError("The cockpit has no JSON form.", "Use a command: qd --help lists them.")
    if plain:
        from quarterdeck.cli.plain import open_plain_cockpit

        ctx.exit(open_plain_cockpit(common.profile))
    from quarterdeck.cli.cockpit import open_cockpit

    ctx.exit(open_cockpit(common.profile))


TEXT_OPTIONS = ("message", "objective", "prompt", "title", "source")
"""Options for what is often given as one argument more, by their parameter."""
TEXTS = frozenset({"message", "prompt", "title"})
"""Arguments that are often given as several words."""


def _step(error: click.UsageError) -> str:
    """Return where words that the command does not expect belong; else nothing."""
    command = error.ctx.command if error.ctx is not None else None
    if command is None:
        return ""
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    if isinstance(error, click.NoSuchOption):
        starts = any((one.metavar or "").startswith("-- ") for one in arguments)
        return "Put -- before the command and its options." if starts else ""
    if not error.message.startswith("Got unexpected extra argument"):
        return ""
    if arguments and arguments[-1].name in TEXTS:
        return "Put a text of several words in quotes."
    options = {one.name: one for one in command.params if isinstance(one, click.Option)}
    option = next((options[name] for name in TEXT_OPTIONS if name in options), None)
    return f"Did you mean {'/'.join(option.opts)}? {option.help or ''}".strip() if option else ""


def run(arguments: Sequence[str]) -> int:
    """Run one verb.

    Returns:
        The exit code, one of `Exit`.
    """
    return guarded(lambda: _run(arguments))


def _run(arguments: Sequence[str]) -> object:
    try:
        return program.main(list(arguments), prog_name="qd", standalone_mode=False, obj=Common())
    except click.ClickException as e:
        if isinstance(e, click.UsageError) and (step := _step(e)):
            e = click.UsageError(f"{e.message.removesuffix('.')}. {step}", e.ctx)
        e.show()
        return Exit.USAGE
    except click.Abort:
        return Exit.INTERRUPTED
