"""Create a replica by answering questions."""

import asyncio
from dataclasses import replace
from pathlib import Path

from quarterdeck.local.repository import CheckoutError, LocalRepository
from quarterdeck.plain.session import FIRST, Session
from quarterdeck.store.creation import CreationRequest, choices, create
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.agents import BUILTIN, Agent
from quarterdeck.wire.replicas import UNCOMMITTED_LIMIT


async def create_replica(session: Session, _: str) -> None:
    """Ask for repository, agent, name and prompt, create the replica and open it."""
    app_state = session.app_state
    with session.dialog():
        session.say("New replica. Type cancel to leave.")
        request = await _ask_request(session)
    session.unsent = request.message
    names = [state.name for state in app_state.replicas.values()]
    session.say("Creating the replica.")
    created = await create(app_state.client, request, names)
    session.unsent = ""
    state = app_state.add(created)
    await session.open(state)
    if request.message:
        session.expect(FIRST)


async def _ask_request(session: Session) -> CreationRequest:
    agents = (await choices(session.app_state.client)).agents
    here = session.here.repository
    hint = f"Enter for {one_line(here)}, - for none" if here else "Enter for none"
    typed = await session.ask(f"Repository, a path or git URL ({hint}):")
    url = None if typed == "-" else await asyncio.to_thread(_in_full, typed) if typed else here
    request = CreationRequest(repository_url=url)
    if url is not None:
        request = await _started(session, request, url)
    agent = await _ask_agent(session, [agent for agent in agents if agent.available])
    name = await session.ask("Name (Enter for one made from the prompt):")
    while any(map(str.isspace, name)):
        name = await session.ask("Names cannot contain spaces; use - instead. Name:")
    message = await session.ask_text(_prompt_question(session))
    return replace(request, agent=agent, name=name or None, message=message or session.unsent)


def _prompt_question(session: Session) -> str:
    return "Prompt (nothing for the one that was not sent)" if session.unsent else "Prompt"


def _in_full(typed: str) -> str:
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
            answer = await session.ask(f"Include uncommitted files ({files})? yes or no:")
            snapshot = await checkout.snapshot(UNCOMMITTED_LIMIT) if answer == "yes" else None
            request = replace(request, uncommitted=snapshot.bundle if snapshot else None)
    except CheckoutError as error:
        session.say(f"Uncommitted files are left out: {error} {error.details or ''}")
    return request


async def _ask_agent(session: Session, agents: list[Agent]) -> str | None:
    """Return the id of an agent that can be used; None where there is none."""
    if not agents:
        return None
    first = next((agent for agent in agents if agent.id != BUILTIN), agents[0])
    if len(agents) == 1:
        session.say(f"Agent: {one_line(first.name)}.")
        return first.id
    session.say(*(f"{number}. {one_line(agent.name)}" for number, agent in enumerate(agents, 1)))
    while True:
        typed = await session.ask(f"Agent, by number or name (Enter for {one_line(first.name)}):")
        if not typed:
            return first.id
        if typed.isdecimal() and 0 < int(typed) <= len(agents):
            return agents[int(typed) - 1].id
        named = [one for one in agents if typed.casefold() in (one.id, one.name.casefold())]
        if named:
            return named[0].id
        session.say(f"There is no agent {typed}.")
