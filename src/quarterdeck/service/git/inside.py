"""Run git in a workspace's sandbox, where files of an agent have only the agent's own permissions.

operation -> sandbox driver -> engine.git_tool, git or a shell script; alongside the engine or while
it rests. A patch is made by the running engine: starting a sandbox takes about as long as git. So is
everything where the files are on another machine, if the engine runs.
"""

import json
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from quarterdeck.engine.link import EngineError, EngineLink, EngineRefusedError
from quarterdeck.sandboxes.errors import ProcessError, SandboxError
from quarterdeck.sandboxes.port import RepositorySource, SandboxDriver
from quarterdeck.sandboxes.source_port import upload_pack_arguments
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.runtime import api_error
from quarterdeck.service.replicas.rows import WorkspaceRow
from quarterdeck.wire.engine import StreamCommand
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.git import (
    Against,
    GitCall,
    GitFailure,
)
from quarterdeck.wire.git_state import EngineRepository
from quarterdeck.wire.replicas import WorkspaceStatus

Answer = TypeVar("Answer", bound=BaseModel)
ANSWER_BYTES = 16 << 20
"""Most bytes of an answer: an agent may have replaced git with another program."""
_PART_BYTES = 1 << 17
_RESTING = (WorkspaceStatus.SLEEPING, WorkspaceStatus.ERROR)


# Without the interpreter: starting it takes longer than the rest of a push.
_UPDATE_ORIGIN = """
git() { command git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c 'safe.directory=*' "$@"; }
git update-ref "refs/remotes/origin/$1" "$2"
"""
_FOLLOW_ORIGIN = f"""{_UPDATE_ORIGIN.rstrip()} &&
git config "branch.$1.remote" origin &&
git config "branch.$1.merge" "refs/heads/$1"
"""


_FED = 'base64 -d | "$@"'
"""Runs a command whose input an engine is given as text."""
OpenLink = Callable[[], Awaitable[EngineLink | None]]
"""Opens a link to the engine; None if it does not run."""
_PATCH = Path(__file__).with_name("patch.sh").read_text("utf-8")


class GitInside:
    """git in one workspace's sandbox. `repositories` are those of the workspace."""

    def __init__(
        self,
        sandboxes: SandboxDriver,
        row: WorkspaceRow,
        repositories: list[EngineRepository],
        open_link: OpenLink,
    ) -> None:
        self._sandboxes = sandboxes
        self._row = row
        self._open_link = open_link
        self.repositories = repositories

    def repository(self, name: str) -> EngineRepository:
        """Return the repository of a name.

        Raises:
            ApiError: NOT_FOUND.
        """
        for one in self.repositories:
            if one.name == name:
                return one
        names = ", ".join(one.name for one in self.repositories) or "none"
        raise ApiError(
            ErrorCode.NOT_FOUND, f"The replica has no repository {name}.", f"repositories: {names}"
        )

    async def call(
        self,
        call: GitCall,
        answer: type[Answer],
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Run an operation; return its result.

        Args:
            environment: additional variables.

        Raises:
            ApiError: CONFLICT with the reason when git refused, WORKSPACE_NOT_ACTIVE when there are
                no files, ENGINE_UNREACHABLE when the sandbox failed or its answer is invalid.
        """
        read = bytearray()
        async with aclosing(self.stream(call, environment)) as parts:
            async for chunk in parts:
                read += chunk
                if len(read) > ANSWER_BYTES:
                    raise unreadable(f"It has more than {ANSWER_BYTES} bytes.")
        try:
            return answer.model_validate_json(bytes(read))
        except ValidationError as error:
            raise unreadable() from error

    async def stream(
        self, call: GitCall, environment: Mapping[str, str] = MappingProxyType({})
    ) -> AsyncGenerator[bytes]:
        """Run an operation; yield its result in parts.

        Raises:
            ApiError: as `call`.
        """
        directory = call.repositories[0].path if call.repositories else "/"
        data = call.model_dump_json(by_alias=True).encode()
        tool = ("-m", "quarterdeck.engine.git_tool")
        async with aclosing(self._run(tool, directory, data, _failure, environment)) as parts:
            async for chunk in parts:
                yield chunk

    async def patch(
        self,
        repository: EngineRepository,
        against: Against,
        paths: Sequence[str],
        checkpoint: str | None = None,
    ) -> AsyncGenerator[bytes]:
        """Yield the changes of a repository as a patch that `git apply` takes.

        Args:
            paths: the files to compare; all if empty.
            checkpoint: commit of a checkpoint, to compare the files with instead.

        Raises:
            ApiError: as `call`.
        """
        branch = repository.base_branch or repository.default_branch
        chosen = [f":(top,literal){path}" for path in paths]
        script = (
            "/bin/sh",
            "-c",
            _PATCH,
            "sh",
            "checkpoint" if checkpoint else against,
            branch,
            checkpoint or repository.base_commit or "",
            *chosen,
        )
        if link := await self._open_link():
            try:
                running = _from_engine(link, script, repository.path, _refusal)
                async with aclosing(running) as parts:
                    async for chunk in parts:
                        yield chunk
                return
            except EngineRefusedError:
                pass  # it is of an older release, and does not know the call
        async with aclosing(self._run(script, repository.path, b"", _refusal)) as parts:
            waiting = bytearray()
            async for chunk in parts:
                # git writes 4 KiB at a time, and each part costs every process that it passes.
                waiting += chunk
                if len(waiting) >= _PART_BYTES:
                    yield bytes(waiting)
                    waiting.clear()
            if waiting:
                yield bytes(waiting)

    async def fetch(
        self, repository: EngineRepository, commit: str, variables: Mapping[str, str]
    ) -> None:
        """Fetch a commit of the source that the service has.

        Args:
            variables: the way to the service.

        Raises:
            ApiError: as `call`.
        """
        fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "origin", commit)
        script = ("/usr/bin/env", "git", *fetch)
        async with aclosing(self._run(script, repository.path, b"", _refusal, variables)) as parts:
            async for _ in parts:
                pass

    async def update_origin(
        self, repository: EngineRepository, branch: str, commit: str, *, track: bool = False
    ) -> None:
        """Note that `origin` has a commit on a branch; with `track` the local branch tracks it from now on.

        Raises:
            ApiError: as `call`.
        """
        script = (
            "/bin/sh",
            "-c",
            _FOLLOW_ORIGIN if track else _UPDATE_ORIGIN,
            "sh",
            branch,
            commit,
        )
        async with aclosing(self._run(script, repository.path, b"", _refusal)) as parts:
            async for _ in parts:
                pass

    async def upload_pack(
        self, repository: EngineRepository, body: bytes | None, protocol: str
    ) -> AsyncGenerator[bytes]:
        """Serve one request of git's smart HTTP protocol; without a body advertise the refs.

        Args:
            protocol: the request's `Git-Protocol` header.

        Raises:
            ApiError: as `call`.
        """
        served = self._run(
            ["/usr/bin/env", "git", *upload_pack_arguments(body)],
            repository.path,
            body or b"",
            _refusal,
            {"GIT_PROTOCOL": protocol},
        )
        async with aclosing(served) as parts:
            async for chunk in parts:
                yield chunk

    async def _run(
        self,
        command: Sequence[str],
        directory: str,
        data: bytes,
        failure: Callable[[bytes], ApiError],
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncGenerator[bytes]:
        """Run a command with `data` as its input; yield what it prints.

        A command that begins with `-m` names a module of this program.
        """
        try:
            layout = await self._sandboxes.layout(self._row.id)
            if command[0] == "-m":
                command = (*layout.interpreter, *command)
            elsewhere = self._sandboxes.saved_work is not None
            if elsewhere and (link := await self._open_link()):
                variables = [f"{name}={text}" for name, text in environment.items()]
                command = ("/usr/bin/env", *variables, *command)
                running = _from_engine(link, command, directory, failure, data)
            else:
                running = self._sandboxes.stream_command(
                    self._row.id, command, directory=directory, data=data, environment=environment
                )
            async with aclosing(running) as parts:
                async for chunk in parts:
                    yield chunk
        except SandboxError as error:
            raise ApiError(ErrorCode.WORKSPACE_NOT_ACTIVE, str(error), error.details) from error
        except ProcessError as error:
            raise failure(error.said) from error


async def _from_engine(
    link: EngineLink,
    command: Sequence[str],
    directory: str,
    failure: Callable[[bytes], ApiError],
    data: bytes = b"",
) -> AsyncGenerator[bytes]:
    """Run a command in the engine's sandbox; yield its output. Closes the link.

    Raises:
        ApiError: as `call`.
        EngineRefusedError: nothing was run.
    """
    if data:
        command = ("/bin/sh", "-c", _FED, "sh", *command)
    try:
        request = StreamCommand(
            command=list(command), directory=directory, data=b64encode(data).decode()
        )
        async with aclosing(link.command_output(request)) as parts:
            async for part in parts:
                yield part
    except EngineRefusedError as error:
        if error.code != ErrorCode.CONFLICT:
            raise
        raise failure((error.details or "").encode()) from error
    except EngineError as error:
        raise api_error(error) from error
    finally:
        await link.close()


def require_files(row: WorkspaceRow) -> None:
    """Check that a workspace has files, also while it rests.

    Raises:
        ApiError: WORKSPACE_NOT_ACTIVE.
    """
    if row.status not in (WorkspaceStatus.ACTIVE, *_RESTING):
        raise ApiError(
            ErrorCode.WORKSPACE_NOT_ACTIVE,
            f"The replica is {row.status}. Wake it first: its files are not available.",
        )


async def git_inside(sandboxes: SandboxDriver, row: WorkspaceRow, open_link: OpenLink) -> GitInside:
    """Return git in a workspace's sandbox.

    Raises:
        ApiError: WORKSPACE_NOT_ACTIVE when there are no files.
    """
    require_files(row)
    sources = [RepositorySource.from_json(one) for one in json.loads(row.repositories_json)]
    return GitInside(sandboxes, row, await sandboxes.repositories(row.id, sources), open_link)


def unreadable(details: str | None = None) -> ApiError:
    """Return the error for an invalid answer of git in a sandbox."""
    message = "The answer of git in the sandbox cannot be read. Run git in the replica's terminal to see what it prints."
    return ApiError(ErrorCode.ENGINE_UNREACHABLE, message, details)


def _refusal(output: bytes) -> ApiError:
    lines = output.decode(errors="replace").strip().splitlines()
    return ApiError(ErrorCode.CONFLICT, "git refused this.", "\n".join(lines[-5:]) or None)


def _failure(output: bytes) -> ApiError:
    lines = output.decode(errors="replace").strip().splitlines()
    try:
        failure = GitFailure.model_validate_json(lines[-1])
    except (IndexError, ValidationError):
        return ApiError(
            ErrorCode.ENGINE_UNREACHABLE,
            "Could not run git in the sandbox. Try again, or check whether git runs in the replica's terminal.",
            "\n".join(lines[-5:]) or None,
        )
    if failure.kind in ("failed", "uncommitted"):
        stashable = failure.kind == "uncommitted"
        code = ErrorCode.UNCOMMITTED_CHANGES if stashable else ErrorCode.CONFLICT
        return ApiError(code, "git refused this.", failure.message)
    conflicts = f"conflicts: {', '.join(failure.conflicts)}" if failure.conflicts else None
    return ApiError(
        ErrorCode.CONFLICT, failure.message, conflicts, conflicts=failure.conflicts or None
    )
