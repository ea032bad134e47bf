"""Running git for the service: no questions asked, no hooks, nothing of the caller's `GIT_*`."""

import asyncio
import os
import secrets
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.sandboxes.port import SandboxError

_TAIL_LINES = 12
_FULL_DISK = ("No space left on device", "Disk quota exceeded", "Out of diskspace")
_PROTOCOLS = "file:git:http:https:ssh"


class GitError(Exception):
    """git refused. `args[0]` holds its last lines."""


class GitTimeoutError(GitError):
    """git was stopped at its time limit."""


class DiskFullError(SandboxError):
    """There is no room left; what was being made has to be made again."""


@dataclass(frozen=True)
class Git:
    """Runs git with a fixed environment.

    `private` takes no notice of the user's configuration (filters, templates, aliases): for what
    happens in mirrors and workspaces. Otherwise the user's configuration at `configuration` is
    read, which is needed to reach remote repositories as the user does.
    """

    configuration: Path

    async def run(
        self,
        *arguments: str,
        directory: Path | None = None,
        private: bool = True,
        seconds: float = 120.0,
    ) -> str:
        """Runs git to its end and returns its standard output, without the last newline.

        Raises:
            GitTimeoutError: it took too long, and was killed with its children.
            DiskFullError: the disk is full.
            GitError: any other failure, also when git is not installed.
        """
        command = ["git", *_OPTIONS, *arguments]
        environment = self.environment(private)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )
        except FileNotFoundError as e:
            raise GitError("git is not installed, or the directory is gone") from e
        out, said = await _finish(process, seconds)
        if process.returncode != 0:
            raise _failure(said.decode(errors="replace"))
        return out.decode(errors="surrogateescape").removesuffix("\n")

    def environment(self, private: bool) -> dict[str, str]:
        """What git runs with: the service's environment without what could steer git."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GIT_", "SSH_ASKPASS"))
        }
        return kept | {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CONFIG_NOSYSTEM": "1" if private else "0",
            "GIT_CONFIG_GLOBAL": os.devnull if private else str(self.configuration),
            "SSH_ASKPASS_REQUIRE": "never",
            "LC_ALL": "C",
        }


_OPTIONS: Sequence[str] = ("-c", f"core.hooksPath={os.devnull}", "-c", "submodule.recurse=false")


def write_configuration(path: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Writes the configuration that reads the user's own and trusts every owner.

    A checkout may belong to another user; git refuses to read it unless a file says otherwise (a
    setting in the environment does not reach the process that serves a local path).
    """
    home = environment.get("HOME", "")
    general = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    included = [
        environment.get("GIT_CONFIG_GLOBAL") or f"{general}/git/config",
        f"{home}/.gitconfig",
    ]
    lines = ["[safe]", "\tdirectory = *"]
    for name in dict.fromkeys(included):
        lines += ["[include]", f"\tpath = {quoted(name)}"]
    # of this call alone: several may write at once
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    new.write_text("\n".join(lines) + "\n")
    new.replace(path)


def quoted(value: str) -> str:
    """A value as git's configuration files want it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


async def _finish(process: asyncio.subprocess.Process, seconds: float) -> tuple[bytes, bytes]:
    try:
        # Not wait_for: it loses a cancellation that comes together with the end.
        async with asyncio.timeout(seconds):
            return await process.communicate()
    except TimeoutError as e:
        await _kill(process)
        raise GitTimeoutError(f"git took longer than {seconds:.0f} seconds") from e
    except BaseException:
        await _kill(process)
        raise


async def _kill(process: asyncio.subprocess.Process) -> None:
    # the leader may be gone already while its helpers (ssh, http) run on
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        await process.wait()


def _failure(said: str) -> Exception:
    tail = "\n".join(said.strip().splitlines()[-_TAIL_LINES:])
    if any(text in said for text in _FULL_DISK):
        return DiskFullError("The disk is full. Make room, and try again.", tail)
    return GitError(tail or "git failed without a word")
