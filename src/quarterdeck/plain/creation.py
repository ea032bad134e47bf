"""Create a replica by answering questions, or a fork of the open one."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import UUID

from quarterdeck.local.repository import CheckoutError, LocalRepository
from quarterdeck.plain.session import FIRST, Session
from quarterdeck.store.app_state import AppState
from quarterdeck.store.creation import (
    CreationChoices,
    CreationRequest,
    choices,
    create,
    models_of,
    usual_agent,
)
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.environments import Environment
from quarterdeck.wire.replicas import (
    NAME_RULE,
    UNCOMMITTED_LIMIT,
    ForkReplica,
    WorkspaceStatus,
    is_replica_name,
)


async def create_replica(session: Session, _: str) -> None:
    """Ask for what a replica starts with, create it and open it."""
    with session.dialog():
        session.say("New replica. Type cancel to leave.")
        app_state = await _ask_service(session)
        request = await _ask_request(session, app_state)
    session.unsent = request.message
    names = [state.name for state in app_state.replicas.values()]
    session.say("Creating the replica.")
    created = await create(app_state.client, request, names)
    session.unsent = ""
    state = app_state.add(created)
    await session.open(state)
    if request.message:
        session.expect(FIRST)


async def fork_replica(session: Session, _: str) -> None:
    """Ask for a name, fork the open replica and open the fork."""
    replica, app_state = session.replica, session.app_state
    if replica is None:
        return
    with session.dialog():
        name = await _ask_name(session, name_line(replica.name))
    created = await app_state.commands.fork(replica.id, ForkReplica(name=name))
    state = app_state.add(created)
    session.say(f"Created {name_line(state.full_name)}. It is opened when it has the files.")
    # A chat that continues there is copied to it before: opened now, all of it would be read out.
    await session.until(
        lambda: state.id not in app_state.replicas or state.status != WorkspaceStatus.PREPARING
    )
    await session.open(state)


@dataclass(frozen=True)
class _Service:
    """A service, as something to choose."""

    store: AppState

    @property
    def id(self) -> str:
        return self.store.connection.endpoint

    @property
    def name(self) -> str:
        return self.store.connection.name


async def _ask_service(session: Session) -> AppState:
    """Return the service that creates the replica: of several, the one that the person chooses."""
    services = session.services
    if not services.several:
        return services.current
    current = services.current.connection.name
    chosen = await choose(
        session, "service", [_Service(one) for one in services.stores], one_line(current)
    )
    return chosen.store if chosen else services.current


async def _ask_request(session: Session, app_state: AppState) -> CreationRequest:
    client = app_state.client
    offered = await choices(client)
    # The address is for the service in use: another one may not reach a directory of this machine.
    here = session.here.repository if app_state is session.services.current else None
    hint = f"Enter for {one_line(here)}, - for none" if here else "Enter for none"
    typed = await session.ask(f"Repository, a path or git URL ({hint}):")
    url = None if typed == "-" else await asyncio.to_thread(in_full, typed) if typed else here
    request = CreationRequest(repository_url=url)
    if url is not None:
        request = await _started(session, request, url)
    environment = await _ask_environment(session, offered, url)
    agent = await ask_agent(session, [agent for agent in offered.agents if agent.available])
    models = await models_of(client, agent) if agent else []
    model = await ask_model(session, models) if models else None
    name = await _ask_name(session, "the prompt")
    message = await session.ask_text(_prompt_question(session))
    return replace(
        request,
        environment_id=environment and environment.id,
        agent=agent,
        model=model,
        name=name,
        message=message or session.unsent,
    )


async def _ask_name(session: Session, source: str) -> str | None:
    """Return a name; None for one that the service makes from a source."""
    name = await session.ask(f"Name (Enter for one made from {source}):")
    while name and not is_replica_name(name):
        why = (
            "Names cannot contain spaces; use - instead."
            if any(map(str.isspace, name))
            else f"A name has {NAME_RULE}."
        )
        name = await session.ask(f"{why} Name:")
    return name or None


def _prompt_question(session: Session) -> str:
    return "Prompt (nothing for the one that was not sent)" if session.unsent else "Prompt"


def in_full(typed: str) -> str:
    """Return the address that was typed, a path of this machine from its root."""
    path = Path(typed).expanduser()
    return str(path.resolve()) if "://" not in typed and path.exists() else typed


async def _started(session: Session, request: CreationRequest, url: str) -> CreationRequest:
    """Return the request with what is checked out here, if it is the same repository."""
    directory = session.here.directory
    local = Path(url) if await asyncio.to_thread(Path(url).is_dir) else directory
    if local is None:
        return request
    try:
        checkout = await LocalRepository.find(local)
        start = await checkout.start(url)
        if start is None:
            return request
        session.say(f"Starts from {one_line(start.base)}, which is checked out here.")
        request = replace(request, base=start.base)
        files = (await checkout.state()).uncommitted
        if start.unpushed:
            session.say(f"Commits that are not pushed are left out: {start.unpushed}.")
        elif files:
            included = await session.ask_yes(f"Include uncommitted files ({files})?", usual=False)
            snapshot = await checkout.snapshot(UNCOMMITTED_LIMIT) if included else None
            request = replace(request, uncommitted=snapshot.bundle if snapshot else None)
    except CheckoutError as error:
        session.say(f"Uncommitted files are left out: {error} {error.details or ''}")
    return request


async def ask_agent(session: Session, agents: list[Agent]) -> str | None:
    """Return the id of an agent that can be used; None where there is none."""
    if not agents:
        return None
    first = next(agent for agent in agents if agent.id == usual_agent(agents))
    if len(agents) == 1:
        session.say(f"Agent: {one_line(first.name)}.")
        return first.id
    chosen = await choose(session, "agent", agents, one_line(first.name))
    return chosen.id if chosen else first.id


async def _ask_environment(
    session: Session, offered: CreationChoices, url: str | None
) -> Environment | None:
    """Return an environment that puts the repository into the replica; None for the usual one."""
    fitting = offered.of_repository(url) if url else offered.unbound
    if len(fitting) < 2:
        return None
    return await choose(session, "environment", fitting, "the usual one")


class _Named(Protocol):
    @property
    def id(self) -> UUID | str: ...
    @property
    def name(self) -> str: ...


_Choice = TypeVar("_Choice", bound=_Named)


async def choose(
    session: Session, what: str, choices: Sequence[_Choice], usual: str
) -> _Choice | None:
    """Return what was chosen by its number, name or id; None for the usual one."""
    session.say(*(f"{number}. {one_line(one.name)}" for number, one in enumerate(choices, 1)))
    while typed := await session.ask(
        f"{what.capitalize()}, by number or name (Enter for {usual}):"
    ):
        if typed.isdecimal() and 0 < int(typed) <= len(choices):
            return choices[int(typed) - 1]
        named = [one for one in choices if typed.casefold() in (str(one.id), one.name.casefold())]
        if named:
            return named[0]
        session.say(f"There is no {what} {typed}.")
    return None


async def ask_model(session: Session, known: Sequence[str]) -> str | None:
    """Return a model, also one that is not known here; None for the agent's default."""
    session.say(f"Models: {', '.join(map(one_line, known))}.")
    return await session.ask("Model (Enter for the agent's default):") or None
