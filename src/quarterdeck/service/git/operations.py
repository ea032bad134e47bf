"""Operations of git in a replica."""

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from uuid import uuid4

from pydantic import ValidationError

from quarterdeck.engine.link import EngineLink
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.port import RepositorySource, SandboxDriver
from quarterdeck.sandboxes.source_port import RefUpdate
from quarterdeck.service.chats.rows import change_chat, list_chats, newest_message_chat, notices
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.rows import decided, layers_of
from quarterdeck.service.environments.setup import way_out
from quarterdeck.service.errors import ApiError, StorageError, UnknownWorkspaceError
from quarterdeck.service.event_log import LogWriter
from quarterdeck.service.event_rows import NewEvent, git_operation
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.fleet.reconcile import give_notices
from quarterdeck.service.git.inside import GitInside, git_inside, unreadable
from quarterdeck.service.hosts.events import as_line
from quarterdeck.service.replicas.rows import (
    WorkspaceRow,
    change_workspace,
    keep_pull_requests,
    seen_repositories,
)
from quarterdeck.service.reports import bounded_json
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.git import (
    Against,
    Checkpoint,
    Checkpoints,
    CommitChanges,
    Committed,
    GitCall,
    GitState,
    GitStates,
    PackHeader,
    PushBranch,
    Pushed,
    Rewind,
    Rewound,
    UpdateBranch,
    Updated,
)
from quarterdeck.wire.git_state import (
    EngineRepository,
    EventRepository,
    ReposChanged,
    RepositoryState,
)
from quarterdeck.wire.history import GitOperationPayload
from quarterdeck.wire.inside import CO_AUTHOR_VARIABLE
from quarterdeck.wire.replicas import WorkspaceStatus

logger = logging.getLogger(__name__)

HEADS = "refs/heads/"
_SHOWN = 5
"""Maximum number of branches in a line."""
_HEADER_BYTES = 1 << 16
_SOURCE_SECONDS = 5.0
"""How long reading a state waits for a source."""
_FIELDS = set(RepositoryState.model_fields)


class GitOperations:
    """Git operations on one workspace, asleep or awake."""

    def __init__(self, context: ServiceContext, fleet: Fleet, row: WorkspaceRow) -> None:
        self._context = context
        self._fleet = fleet
        self._row = row

    async def states(self) -> GitStates:
        """Return the state of every repository, refreshed if the engine runs.

        Commits that were merged in a source on this machine are not ahead any more.

        Raises:
            ApiError: the engine cannot be reached.
        """
        if self._row.status == WorkspaceStatus.ACTIVE:
            seen = await self._look()
        else:
            seen = seen_repositories(self._row)
        try:
            seen = await self._follow_directories(seen)
        except (ApiError, SandboxError) as error:
            logger.info("the sources of replica %s were not followed: %s", self._row.id, error)
        paths = await self._paths()
        return GitStates(
            repositories=[
                GitState.model_validate(
                    {**one.status().model_dump(include=_FIELDS), "path": paths.get(one.name)}
                )
                for one in seen
            ]
        )

    async def _follow_directories(self, seen: list[EventRepository]) -> list[EventRepository]:
        """Fetch base branches from directories of this machine; return the state after that.

        Raises:
            ApiError, SandboxError: the replica has no files, or its state cannot be read.
        """
        ahead = {one.name: one for one in seen if one.ahead}
        if not ahead or not await self._is_quick():
            return seen
        inside = await self._inside()
        moved = await asyncio.gather(
            *(
                self._follow_directory(inside, one, ahead[one.name].base_head)
                for one in inside.repositories
                if one.name in ahead
            )
        )
        return await self._report(inside) if any(moved) else seen

    async def _follow_directory(
        self, inside: GitInside, one: EngineRepository, known: str | None
    ) -> bool:
        """Fetch a base branch if its source is a directory; return whether it moved.

        A source that cannot be read now is left out: the state is shown as it is known.
        """
        sources, source = self._context.sources, self._source(one)
        branch = one.base_branch or one.default_branch
        try:
            async with asyncio.timeout(_SOURCE_SECONDS):
                if await sources.local_head(source, branch) in (None, known):
                    return False
                base = await sources.fetch_branch(source, branch)
            await self._bring(inside, one, base)
            await inside.update_origin(one, branch, base)
        except (ApiError, SandboxError, TimeoutError) as error:
            name, id = one.name, self._row.id
            logger.info("the source of %s in replica %s was not read: %r", name, id, error)
            return False
        return True

    async def _is_quick(self) -> bool:
        """Return whether git can run inside without the start of a container."""
        if self._row.status == WorkspaceStatus.SLEEPING:
            return (await self._context.driver(self._row.id)).saved_work is None
        return self._row.status == WorkspaceStatus.ACTIVE

    async def _fetch_base(self, inside: GitInside, one: EngineRepository) -> tuple[str, str]:
        """Return the base branch and its newest commit, which the replica has from now on.

        Raises:
            SandboxError: the source cannot be reached.
        """
        branch = one.base_branch or one.default_branch
        base = await self._context.sources.fetch_branch(self._source(one), branch)
        await self._bring(inside, one, base)
        return branch, base

    async def _bring(self, inside: GitInside, one: EngineRepository, commit: str) -> None:
        """Bring a commit of the mirror into the replica."""
        driver = await self._context.driver(self._row.id)
        if driver.saved_work is not None and self._row.status == WorkspaceStatus.ACTIVE:
            await inside.fetch(one, commit, await self._way_out(driver))
        else:
            await driver.show_commit(self._row.id, one, self._source(one), commit)

    async def diff(
        self, repository: str, against: Against, path: str | None, checkpoint: str | None
    ) -> "StartedStream":
        """Return a patch that `git apply` takes, in parts. Errors are raised before the first part.

        Raises:
            ApiError: NOT_FOUND, WORKSPACE_NOT_ACTIVE when there are no files, CONFLICT when git
                refused.
        """
        inside, one = await self._repository(repository)
        of = None if checkpoint is None else await self._checkpoint(checkpoint, repository)
        commit = of and of.commits[repository]
        parts = inside.patch(one, against, [path] if path else [], commit)
        return StartedStream(await anext(parts, b""), parts)

    async def _open_link(self) -> EngineLink | None:
        """Open a link to the engine; None if it does not run, or is being put to rest."""
        manager = self._fleet.of(self._row.id)
        if self._row.status != WorkspaceStatus.ACTIVE or manager.site.line.link is None:
            return None
        try:
            return await manager.open_link(self._row)
        except ApiError:
            return None

    async def upload_pack(
        self, repository: str, body: bytes | None, protocol: str
    ) -> "StartedStream":
        """Serve a fetch of branches and tags: one request of git's smart HTTP protocol, version 2.

        Raises:
            ApiError: as `diff`.
        """
        inside, one = await self._repository(repository)
        parts = inside.upload_pack(one, body, protocol)
        return StartedStream(await anext(parts, b""), parts)

    async def commit(self, repository: str, body: CommitChanges) -> Committed:
        """Commit changes; the default message is the title of the newest chat.

        Raises:
            ApiError: CONFLICT when there is nothing to commit, or as `diff`.
        """
        inside, one = await self._repository(repository)
        message = body.message or await self.title()
        call = GitCall(
            operation="commit", repositories=[one], message=message, paths=body.paths or []
        )
        row = self._row
        author = await self._context.database.read(
            lambda c: decided(layers_of(c, row.organization_id, row.environment_id), "co_author")
        )
        variables = {CO_AUTHOR_VARIABLE: author} if author else {}
        done = await inside.call(call, Committed, variables)
        place = f"{done.branch or 'a detached head'} in {one.name}"
        title = as_line(done.commit.title) or ""
        text = f"Committed {_short(done.commit.sha)} to {place}: {title}"
        await self.record("commit", text, one.name)
        await self._changed(inside)
        return done

    async def update(self, repository: str, body: UpdateBranch) -> Updated:
        """Merge the current base branch of the source.

        Raises:
            ApiError: CONFLICT with the files in `conflicts` and no changes, or when the source
                cannot be reached; UNCOMMITTED_CHANGES; as `diff`.
        """
        inside, one = await self._repository(repository)
        try:
            branch, base = await self._fetch_base(inside, one)
        except SandboxError as error:
            raise ApiError(ErrorCode.CONFLICT, str(error), error.details) from error
        call = GitCall(
            operation="update",
            repositories=[one],
            base=base,
            rebase=body.strategy == "rebase",
            autostash=body.autostash,
        )
        done = await inside.call(call, Updated)
        if done.changed:
            came_in = f"{branch} ({_short(done.base)})"
            rebased = body.strategy == "rebase"
            text = (
                f"Rebased {one.name} onto {came_in}"
                if rebased
                else f"Merged {came_in} into {one.name}"
            )
            if done.conflicts:
                text += "; the stashed changes conflict with it and stay in the stash, too"
            await self.record("update", text, one.name)
        await self._changed(inside)
        return done

    async def push(self, repository: str, body: PushBranch) -> Pushed:
        """Push a branch to the source with the person's credentials.

        Raises:
            ApiError: CONFLICT with the reason when the source refused, the branch is checked out
                there, or there is no such branch; as `diff`.
        """
        inside, one = await self._repository(repository)
        call = GitCall(operation="pack", repositories=[one], branch=body.branch)
        async with aclosing(inside.stream(call)) as parts:
            header, rest = await _read_header(parts)
            update = RefUpdate(f"{HEADS}{header.branch}", header.commit, force=body.force)
            message = await self._push(one, rest, [update])
        try:
            await inside.update_origin(one, header.branch, header.commit, track=True)
        except ApiError as error:  # the source has it anyway
            logger.warning("the push of replica %s could not be noted: %s", self._row.id, error)
        changed = "[up to date]" not in message
        if changed:
            await self.record("push", pushed_text(one.name, [update]), one.name)
        await self._changed(inside)
        return Pushed(
            repository=one.name,
            branch=header.branch,
            commit=header.commit,
            changed=changed,
            message=message,
        )

    async def _paths(self) -> dict[str, str]:
        """Return where each repository is on this machine."""
        driver = await self._context.driver(self._row.id)
        layout = await driver.layout(self._row.id)
        if layout.host_dir is None or not await asyncio.to_thread(Path(layout.host_dir).is_dir):
            return {}
        repositories = await driver.repositories(self._row.id, self._sources())
        inside = Path(layout.workspace_dir)
        return {
            one.name: str(Path(layout.host_dir, Path(one.path).relative_to(inside)))
            for one in repositories
        }

    async def checkpoints(self) -> Checkpoints:
        """Return the checkpoints of the repositories.

        Raises:
            ApiError: as `diff`.
        """
        inside = await self._inside()
        call = GitCall(operation="checkpoints", repositories=inside.repositories)
        return await inside.call(call, Checkpoints)

    async def _checkpoint(self, id: str, repository: str | None = None) -> Checkpoint:
        for one in (await self.checkpoints()).checkpoints:
            if one.id == id and repository in (None, *one.commits):
                return one
        raise ApiError(ErrorCode.NOT_FOUND, f"The replica has no checkpoint {id}.")

    async def rewind(self, body: Rewind) -> Rewound:
        """Restore the files and branches of a checkpoint, in every repository that has it.

        Raises:
            ApiError: NOT_FOUND: the checkpoint does not exist; CONFLICT while a turn runs; as `diff`.
        """
        row = self._row
        if any(
            chat.processing
            for chat in await self._context.database.read(lambda c: list_chats(c, row.id))
        ):
            raise ApiError(
                ErrorCode.CONFLICT, "The agent is working. Interrupt the turn before you rewind."
            )
        checkpoint = await self._checkpoint(body.checkpoint)
        inside = await self._inside()
        undo = f"rewinds/{uuid4()}"
        for one in inside.repositories:
            if one.name in checkpoint.commits:
                call = GitCall(
                    operation="rewind", repositories=[one], checkpoint=body.checkpoint, undo=undo
                )
                async with aclosing(inside.stream(call)) as parts:
                    async for _ in parts:
                        pass
        if body.chat:
            await self._record_rewind(checkpoint)
        await self._changed(inside)
        return Rewound(undo=undo)

    async def _record_rewind(self, checkpoint: Checkpoint) -> None:
        """Record the rewind in every chat, and notify its agent before the next message."""
        id = self._row.id
        text, notice = _rewound_texts(checkpoint)
        payload = GitOperationPayload(operation="rewind", text=text)

        def store(writer: LogWriter) -> None:
            earlier = notices(writer.connection, id)
            for chat in list_chats(writer.connection, id):
                if chat.last_message_text:
                    chat_id = str(chat.id)
                    writer.append(id, [git_operation(chat_id, payload)])
                    combined = "\n\n".join([*filter(None, [earlier.get(chat_id)]), notice])
                    change_chat(writer.connection, id, chat_id, notice=combined)

        try:
            await self._context.event_log.write(store)
            if self._row.status == WorkspaceStatus.ACTIVE:
                database = self._context.database
                await self._fleet.of(id).call(
                    self._row, lambda link: give_notices(database, id, link)
                )
        except (ApiError, StorageError, UnknownWorkspaceError) as error:
            logger.warning("the chats of replica %s were not told of a rewind: %s", id, error)

    async def send(self, repository: str, updates: Sequence[RefUpdate]) -> str:
        """Push commits of the workspace to the source; return git's message.

        Raises:
            ApiError: CONFLICT with the reason; as `diff`.
        """
        inside, one = await self._repository(repository)
        commits = [update.commit for update in updates if update.commit is not None]
        if not commits:
            return await self._push(one, _nothing(), updates)
        call = GitCall(operation="pack", repositories=[one], commits=commits)
        async with aclosing(inside.stream(call)) as parts:
            return await self._push(one, parts, updates)

    async def record(
        self, operation: str, text: str, repository: str, chat_id: str | None = None
    ) -> None:
        """Add a line to the history of a chat. The operation is done even if this fails.

        It goes to the event log and not through the engine, so that a sleeping replica has it too.
        Without a chat there is no line.

        Args:
            text: the operation, in one line.
            chat_id: the chat that did it; if None or missing, the working chat, else the newest.
        """
        payload = GitOperationPayload(operation=operation, repository=repository, text=text)
        id = self._row.id

        def store(writer: LogWriter) -> None:
            chats = list_chats(writer.connection, id)
            chosen = [chat for chat in chats if str(chat.id) == chat_id] or chats
            newest = max(chosen, key=lambda chat: (chat.processing, chat.updated_at), default=None)
            if newest is not None:
                writer.append(id, [git_operation(str(newest.id), payload)])

        try:
            await self._context.event_log.write(store)
        except (StorageError, UnknownWorkspaceError) as error:
            logger.warning("%r of replica %s could not be recorded: %s", operation, id, error)

    async def source(self, repository: str) -> RepositorySource:
        """Return the source of a repository.

        Raises:
            ApiError: NOT_FOUND.
        """
        _, one = await self._repository(repository)
        return self._source(one)

    async def _push(
        self, one: EngineRepository, pack: AsyncGenerator[bytes], updates: Sequence[RefUpdate]
    ) -> str:
        try:
            return await self._context.sources.push(self._source(one), pack, updates)
        except SandboxError as error:
            raise ApiError(ErrorCode.CONFLICT, str(error), error.details) from error

    async def _way_out(self, driver: SandboxDriver) -> dict[str, str]:
        row = self._row
        secret = self._context.vault.unseal(row.id, row.engine_secret_sealed)
        return way_out(row, secret, await driver.layout(row.id))

    async def _inside(self) -> GitInside:
        driver = await self._context.driver(self._row.id)
        return await git_inside(driver, self._row, self._open_link)

    async def _repository(self, name: str) -> tuple[GitInside, EngineRepository]:
        inside = await self._inside()
        return inside, inside.repository(name)

    def _sources(self) -> list[RepositorySource]:
        return [RepositorySource.from_json(one) for one in json.loads(self._row.repositories_json)]

    def _source(self, one: EngineRepository) -> RepositorySource:
        return next(source for source in self._sources() if source.id == str(one.id))

    async def title(self) -> str:
        """Return the title of the work: that of the newest chat, else the replica's name."""
        row = self._row
        chats = await self._context.database.read(lambda c: list_chats(c, row.id))
        chat = newest_message_chat(chats)
        return (chat and chat.title) or row.name

    async def _look(self) -> list[EventRepository]:
        answer = await self._fleet.of(self._row.id).call(
            self._row, lambda link: link.repos_refresh()
        )
        return answer.repos

    async def _changed(self, inside: GitInside) -> None:
        """Report the new state. The change is done even if this fails."""
        try:
            await self._report(inside)
        except ApiError as error:
            logger.warning("the state of replica %s could not be read: %s", self._row.id, error)

    async def _report(self, inside: GitInside) -> list[EventRepository]:
        """Read the state and report it.

        Raises:
            ApiError: it could not be read.
        """
        if self._row.status == WorkspaceStatus.ACTIVE:
            return await self._look()  # the engine reports it
        seen_before = seen_repositories(self._row)
        completed = bool(seen_before) and all(one.start_hooks_completed for one in seen_before)
        call = GitCall(
            operation="look", repositories=inside.repositories, hooks_completed=completed
        )
        told = await inside.call(call, ReposChanged)
        seen = ReposChanged.model_validate(bounded_json(told.model_dump(mode="json")))
        id = self._row.id
        await self._context.event_log.write(lambda writer: store_repositories(writer, id, seen))
        return seen.repos


def store_repositories(writer: LogWriter, workspace_id: str, seen: ReposChanged) -> None:
    """Store and report the state of a workspace's repositories."""
    keep_pull_requests(writer.connection, workspace_id, seen.repos)
    payload = seen.model_dump(mode="json", by_alias=True)
    writer.append(workspace_id, [NewEvent(EventType.REPO_STATUS_CHANGED, payload)])
    kept = json.dumps([one.model_dump(mode="json") for one in seen.repos])
    change_workspace(writer.connection, workspace_id, repository_statuses_json=kept)


def _rewound_texts(checkpoint: Checkpoint) -> tuple[str, str]:
    """Return the line of the transcript for a rewind, and the notice for an agent."""
    title = as_line(checkpoint.title) or ""
    of_turn = checkpoint.id.startswith("turns/")
    state = f'the state before the message "{title}"' if of_turn else "the state before a rewind"
    notice = (
        f"(Notice: a person has rewound the files and branches of the repositories to {state},"
        f" of {checkpoint.at:%Y-%m-%d %H:%M:%S} UTC. Changes and commits that were made after it are"
        " not there now. Read files again before you rely on what you know of them.)"
    )
    return f"Rewound the files to {state}", notice


def _short(commit: str) -> str:
    return commit[:8]


def pushed_text(repository: str, updates: Sequence[RefUpdate]) -> str:
    """Describe a push to the source of a repository, in one line."""
    groups = (
        ("Pushed", "to", [one for one in updates if one.commit and not one.force]),
        ("Force-pushed", "to", [one for one in updates if one.commit and one.force]),
        ("Removed", "at", [one for one in updates if not one.commit]),
    )
    return "; ".join(
        f"{verb} {_names(some)} {where} the source of {repository}"
        for verb, where, some in groups
        if some
    )


def _names(updates: Sequence[RefUpdate]) -> str:
    shown = [
        one.ref.removeprefix(HEADS) + (f" ({_short(one.commit)})" if one.commit else "")
        for one in updates[:_SHOWN]
    ]
    more = len(updates) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


async def _read_header(parts: AsyncGenerator[bytes]) -> tuple[PackHeader, AsyncGenerator[bytes]]:
    """Return the first line as the header, and the rest.

    Raises:
        ApiError: ENGINE_UNREACHABLE: it is not a header.
    """
    buffer = b""
    while b"\n" not in buffer and len(buffer) < _HEADER_BYTES:
        buffer += await anext(parts, b"\n")
    line, _, first = buffer.partition(b"\n")

    async def rest() -> AsyncGenerator[bytes]:
        yield first
        async for part in parts:
            yield part

    try:
        return PackHeader.model_validate_json(line), rest()
    except ValidationError as error:
        raise unreadable() from error


async def _nothing() -> AsyncGenerator[bytes]:
    """Yield an empty pack: a push that only removes branches sends nothing."""
    header = b"PACK\0\0\0\2\0\0\0\0"
    yield header + hashlib.sha1(header, usedforsecurity=False).digest()


class StartedStream:
    """A stream whose first part was read already. Closing it closes its source, even if unread."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes]) -> None:
        self._first: bytes | None = first
        self._rest = rest

    def __aiter__(self) -> "StartedStream":
        return self

    async def __anext__(self) -> bytes:
        if (first := self._first) is not None:
            self._first = None
            return first
        return await anext(self._rest)

    def prepend(self, data: bytes) -> None:
        """Prepend a part."""
        self._first = data + (self._first or b"")

    async def aclose(self) -> None:
        """Close the source."""
        await self._rest.aclose()
