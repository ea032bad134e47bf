"""The verbs, and how what they raise becomes an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from quarterdeck import __version__
from quarterdeck.cli.errors import CliError
from quarterdeck.cli.exits import Exit
from quarterdeck.cli.lazy import LazyGroup, Verb
from quarterdeck.cli.options import Common, json_option, profile_option

if TYPE_CHECKING:
    from quarterdeck.client.errors import ClientError

VERBS = {
    "serve": Verb("quarterdeck.cli.verbs.serve", "Run the service in the foreground."),
    "status": Verb("quarterdeck.cli.verbs.status", "Say whether the service answers, and where."),
    "stop": Verb("quarterdeck.cli.verbs.stop", "Stop the embedded service; engines go on."),
    "doctor": Verb("quarterdeck.cli.verbs.doctor", "Check this machine and say what to mend."),
    "auth": Verb("quarterdeck.cli.auth", "Keys and tokens: get one, let a device in."),
    "keys": Verb("quarterdeck.cli.keys", "Make, list and take away API keys."),
    "notify": Verb("quarterdeck.cli.notify", "Say where your notifications go."),
    "agents": Verb("quarterdeck.cli.agents", "Which coding agents there are; install one."),
    "credentials": Verb("quarterdeck.cli.credentials", "Keys of the providers behind agents."),
    "repo": Verb("quarterdeck.cli.repo", "Connect repositories, and group them in sets."),
    "env": Verb("quarterdeck.cli.env", "Environments: what replicas are made from."),
    "automation": Verb("quarterdeck.cli.automation", "Agents that run on schedules and events."),
    "replica": Verb("quarterdeck.cli.replica", "Make, watch and command replicas."),
    "check": Verb("quarterdeck.cli.check", "Inside a replica: report a check's verdict."),
    "preview": Verb("quarterdeck.cli.preview", "Inside a replica: show a port of it."),
}

EPILOG = """\b
Exit codes: 0 done, 1 refused or failed, 2 usage, 3 unreachable, 130 interrupted.
QD_URL and QD_API_KEY choose another service; QUARTERDECK_HOME moves everything."""


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
)
@click.version_option(__version__, prog_name="qd", message="%(prog)s %(version)s")
@json_option
@profile_option
@click.pass_context
def program(ctx: click.Context) -> None:
    """One deck for many coding agents. Without a verb the cockpit opens."""
    if ctx.invoked_subcommand is None:
        from quarterdeck.cli.verbs.cockpit import open_cockpit

        ctx.exit(open_cockpit(ctx.find_object(Common) or Common()))


def run(arguments: Sequence[str]) -> int:
    """Runs one verb.

    Returns:
        The exit code, one of `Exit`.
    """
    try:
        result = program.main(list(arguments), prog_name="qd", standalone_mode=False, obj=Common())
        sys.stdout.flush()
    except click.ClickException as e:
        e.show()
        return Exit.USAGE
    except (KeyboardInterrupt, click.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return _reader_left()
    except CliError as e:
        _tell(e.message, e.next_step)
        return e.exit_code
    except Exception as e:
        code = _foreseen_exit(e)
        if code is None:
            raise
        return code
    return result if isinstance(result, int) else Exit.DONE


def _foreseen_exit(error: Exception) -> Exit | None:
    """The exit code of a failed call; None for what nobody foresaw.

    Nothing is imported for it: what raised an error of a package has imported that package.
    """
    if "pydantic" in sys.modules:
        from pydantic import ValidationError

        if isinstance(error, ValidationError):
            # Answers are read by the client; what is left is a request that cannot be made.
            first = error.errors(include_url=False, include_input=False)[0]
            _tell(f"{'.'.join(map(str, first['loc']))}: {first['msg']}.", None)
            return Exit.USAGE
    if "quarterdeck.client.errors" not in sys.modules:
        return None
    from quarterdeck.client.errors import ApiError, BadKey, ClientError

    if not isinstance(error, ClientError):
        return None
    _tell(_sentence(error), error.next_step)
    match error:
        case ApiError():
            return Exit.REFUSED
        case BadKey():
            return Exit.USAGE
        case _:
            return Exit.UNREACHABLE


def _sentence(error: "ClientError") -> str:
    details = getattr(error, "details", None)
    return f"{error.message} ({details})" if details else error.message


def _tell(message: str, next_step: str | None) -> None:
    from quarterdeck.cli.output import say

    say(f"qd: {message}")
    if next_step:
        say(f"    {next_step}")


def _reader_left() -> int:
    """The reader of stdout went away, as `head` does: nothing is wrong, nothing more is said."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return Exit.DONE
