"""What a program prints about an error, and its exit code."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from quarterdeck.cli.errors import CliError, Exit
from quarterdeck.cli.output import print_message

if TYPE_CHECKING:
    from quarterdeck.client.errors import ClientError

_NOT_OURS = "Check its owner and its mode, and those of the directories above it."


def guarded(work: Callable[[], object]) -> int:
    """Run a program's work; print what went wrong to standard error.

    Returns:
        The exit code: the work's own result when it is a number, else one of `Exit`.
    """
    try:
        result = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return _end_quietly()
    except CliError as e:
        _print_error(e.message, e.next_step)
        return e.exit_code
    except Exception as e:
        code = _expected_exit(e)
        if code is None:
            raise
        return code
    return result if isinstance(result, int) else Exit.DONE


def _expected_exit(error: Exception) -> Exit | None:
    """Return the exit code of a failed call; None for an unexpected error.

    Nothing is imported for it: what raised an error of a package has imported that package.
    """
    if "pydantic" in sys.modules:
        from pydantic import ValidationError

        if isinstance(error, ValidationError):
            # Answers are read by the client; what is left is a request that cannot be made.
            from quarterdeck.wire.base import first_error

            _print_error(f"{first_error(error)}.", None)
            return Exit.USAGE
    if isinstance(error, PermissionError) and error.filename:
        _print_error(f"{error.filename} cannot be used: {error.strerror}.", _NOT_OURS)
        return Exit.REFUSED
    if "quarterdeck.client.errors" not in sys.modules:
        return None
    from quarterdeck.client.errors import ClientError, InvalidKeyError, ResponseError

    if not isinstance(error, ClientError):
        return None
    _print_error(_full_message(error), error.next_step)
    match error:
        case ResponseError():
            return Exit.REFUSED
        case InvalidKeyError():
            return Exit.USAGE
        case _:
            return Exit.UNREACHABLE


def _full_message(error: "ClientError") -> str:
    details = getattr(error, "details", None)
    return f"{error.message} ({details})" if details else error.message


def _print_error(message: str, next_step: str | None) -> None:
    print_message(f"qd: {message}")
    if next_step:
        print_message(f"    {next_step}")


def _end_quietly() -> int:
    """Return the exit code when the reader of stdout went away, as `head` does: nothing is wrong, nothing more is said."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return Exit.DONE
