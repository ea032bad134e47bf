"""`origin` of a replica's repositories, for the git that runs inside.

git -> git-remote-qd -> origin_routes.py -> the mirror (fetch); push policy, person -> the source
(push)

The credentials stay with the service.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from uuid import UUID

from sqlalchemy import Connection

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.sandboxes.source_port import RefUpdate
from quarterdeck.service.automations.run_rows import push_policy_of_run
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.rows import push_policy
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.git.operations import (
    HEADS,
    GitOperations,
    StartedStream,
    pushed_text,
)
from quarterdeck.service.git.own_branches import OwnBranches, own_branches
from quarterdeck.service.replicas.rows import WorkspaceRow, change_workspace
from quarterdeck.wire.engine import AskOption, AskPerson
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.git import OriginPushed, OriginUpdate, PushOrigin, SourceRefs
from quarterdeck.wire.permissions import PushPolicy

ONCE, ALWAYS, NO = "push", "push-always", "reject"
ANSWER_SECONDS = 86_400.0
"""How long a person may take to answer."""
_SHOWN, _SHOWN_OTHERS = 5, 20
"""Most branches of a push that a message names, and of those that are not the replica's own."""
_PULL_REQUEST = re.compile(
    rb"ref-prefix (refs/(?:pull|merge-requests)/[0-9]{1,10}/(?:head|merge))(?=\n|[0-9a-f]{4})"
)
_MOST_PULL_REQUESTS = 10
AUTOMATION = "automation"


class RepositoryOrigin:
    """The source of a workspace's repository, for callers inside the workspace."""

    def __init__(self, context: ServiceContext, fleet: Fleet, row: WorkspaceRow) -> None:
        self._context = context
        self._fleet = fleet
        self._row = row
        self._operations = GitOperations(context, fleet, row)

    async def refs(self, repository: str) -> SourceRefs:
        """Return the current refs of the source.

        Raises:
            ApiError: NOT_FOUND; CONFLICT when the source cannot be reached.
        """
        source = await self._operations.source(repository)
        try:
            return SourceRefs(refs=await self._context.sources.source_refs(source))
        except SandboxError as error:
            raise ApiError(ErrorCode.CONFLICT, str(error), error.details) from error

    async def upload_pack(
        self, repository: str, body: bytes | None, protocol: str
    ) -> StartedStream:
        """Serve one request of a fetch; the first one reads the source.

        The id of the workspace names the save of its work.

        Raises:
            ApiError: as `refs`.
        """
        if repository == self._row.id:
            saves = (await self._context.driver(repository)).saved_work
            if saves is not None:
                return await self._started(saves.upload_pack(repository, body, protocol))
        source = self._cloned(repository)
        if source is None:
            source = await self._operations.source(repository)
            if body is None:
                await self.refs(repository)
        if body is not None and (numbers := _pull_requests(body)):
            await self._context.sources.fetch_pull_requests(source, numbers)
        return await self._started(self._context.sources.upload_pack(source, body, protocol))

    async def _started(self, parts: AsyncGenerator[bytes]) -> StartedStream:
        turns = self._fleet.of(self._row.id).fetches
        return await _started(_in_turn(turns, parts))

    def _cloned(self, repository_id: str) -> RepositorySource | None:
        """Return the source of an id: an engine in a container names it so to make its clone.

        The mirror was brought up to date for that.
        """
        for entry in json.loads(self._row.repositories_json):
            if entry["id"] == repository_id:
                return RepositorySource.from_json(entry)
        return None

    async def push(self, repository: str, body: PushOrigin) -> OriginPushed:
        """Push if the policy, or a person, allows it.

        Raises:
            ApiError: FORBIDDEN when the policy or the person refuses; CONFLICT when the source does.
        """
        source = await self._operations.source(repository)
        policy = await self._policy()
        own = await self._context.database.read(lambda c: own_branches(c, self._row))
        others = [one for one in body.updates if not own.has(one.ref)]
        _refuse(policy, others)
        if policy is PushPolicy.ASK:
            question = push_question(source, body.updates, own)
            await self._ask_person(question, body.chat_id, own=not others)
        updates = [RefUpdate(one.ref, one.commit, one.force, one.known) for one in body.updates]
        async with self._fleet.of(self._row.id).pushes:
            message = await self._operations.send(repository, updates)
        chat = str(body.chat_id) if body.chat_id else None
        await self._operations.record("push", pushed_text(source.name, updates), source.name, chat)
        return OriginPushed(message=message)

    async def _policy(self) -> PushPolicy:
        row = self._row
        if row.push is not None:
            return PushPolicy(row.push)
        return PushPolicy(await self._context.database.read(lambda c: _policy_of(c, row)))

    async def _ask_person(self, title: str, chat_id: UUID | None, *, own: bool) -> None:
        """Ask in the chat; a permanent answer is stored."""
        options = [
            AskOption(option_id=ONCE, name="Push", kind="allow_once"),
            AskOption(option_id=NO, name="Do not push", kind="reject_once"),
        ]
        if own:
            name = "Push, and do not ask again for this replica's branch"
            options.insert(1, AskOption(option_id=ALWAYS, name=name, kind="allow_always"))
        question = AskPerson(chat_id=chat_id, title=title, options=options)
        choice = await self._fleet.of(self._row.id).call(
            self._row, lambda link: link.chat_ask(question), ANSWER_SECONDS
        )
        if choice.option_id == ALWAYS:
            await self._context.database.write(
                lambda connection: change_workspace(
                    connection, self._row.id, push=PushPolicy.OWN_BRANCH.value
                )
            )
        elif choice.option_id != ONCE:
            raise ApiError(ErrorCode.FORBIDDEN, "The person who was asked did not allow the push.")


async def _in_turn(turns: asyncio.Semaphore, parts: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Begin a stream when it is its turn, which lasts until the stream is closed."""
    async with turns, aclosing(parts):
        async for part in parts:
            yield part


async def _started(parts: AsyncGenerator[bytes]) -> StartedStream:
    try:
        return StartedStream(await anext(parts, b""), parts)
    except SandboxError as error:
        raise ApiError(ErrorCode.CONFLICT, str(error), error.details) from error


def _policy_of(connection: Connection, row: WorkspaceRow) -> str:
    """Return the policy of the automation, else of the environment, else the default."""
    of_run = row.source == AUTOMATION
    return (
        (of_run and push_policy_of_run(connection, row.id))
        or push_policy(connection, row.organization_id, row.environment_id)
        or (PushPolicy.OWN_BRANCH if of_run else PushPolicy.ASK)
    )


def _pull_requests(body: bytes) -> list[str]:
    """Return the heads of pull requests that a request for refs names."""
    if b"command=ls-refs" not in body[:64]:
        return []
    names = {one.decode() for one in _PULL_REQUEST.findall(body)}
    return sorted(names)[:_MOST_PULL_REQUESTS]


def _refuse(policy: PushPolicy, others: Sequence[OriginUpdate]) -> None:
    """Refuse a push that the policy does not allow.

    Args:
        others: updates of other branches than the replica's own.

    Raises:
        ApiError: FORBIDDEN.
    """
    if policy is PushPolicy.NEVER:
        raise ApiError(
            ErrorCode.FORBIDDEN,
            "Pushing is disabled for this replica.",
            "A person can push with: qd replica push.",
        )
    if policy is PushPolicy.OWN_BRANCH and others:
        raise ApiError(
            ErrorCode.FORBIDDEN,
            "Only the replica's own branch may be pushed.",
            f"Refused: {_names(others)}.",
        )
    forced = [one for one in others if one.force or one.commit is None]
    if policy is PushPolicy.ANY and forced:
        raise ApiError(
            ErrorCode.FORBIDDEN,
            "Only the replica's own branch may be overwritten or removed.",
            f"Refused: {_names(forced)}.",
        )


def push_question(
    source: RepositorySource, updates: Sequence[OriginUpdate], own: OwnBranches
) -> str:
    """Return the question about a push: what is lost by it first, and the replica's own branches last."""
    default = HEADS + source.default_branch
    ordered = sorted(updates, key=lambda one: (one.ref != default, own.has(one.ref)))
    removed = [one for one in ordered if one.commit is None]
    forced = [one for one in ordered if one.commit is not None and one.force]
    plain = [one for one in ordered if one.commit is not None and not one.force]
    parts: list[str] = []
    for verb, some in (("remove", removed), ("overwrite", forced), ("push", plain)):
        others = sum(not own.has(one.ref) for one in some)
        if some:
            parts.append(f"{verb} {_names(some, min(max(_SHOWN, others), _SHOWN_OTHERS), default)}")
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]} at the source of {source.name}, with your credentials?"


def _names(updates: Sequence[OriginUpdate], most: int = _SHOWN, default: str = "") -> str:
    names = [
        one.ref.removeprefix(HEADS) + (" (the default branch)" if one.ref == default else "")
        for one in updates[:most]
    ]
    more = len(updates) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
