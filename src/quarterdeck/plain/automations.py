"""Automations: list them, start and approve their runs, switch, create and delete them."""

from uuid import UUID

from quarterdeck.client.errors import InvalidRequestError
from quarterdeck.plain.creation import ask_agent, choose
from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.automation_draft import (
    AutomationDraft,
    check_name_is_free,
    coming,
    save_draft,
)
from quarterdeck.store.automation_state import AutomationState, Standing, under_way
from quarterdeck.store.creation import CreationChoices, choices
from quarterdeck.store.environments import EnvironmentBook
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.wire.automation_runs import TriggerAutomation
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.environments import Environment

NEW = "new"
AUTOMATION_WORDS = (NEW, "run", "on", "off", "approve", "cancel", "delete")
"""What may follow `automations`."""
STANDINGS = {
    Standing.SWITCHED_OFF: "was switched off",
    Standing.FAILING: "failed",
    Standing.APPROVAL: "waits for approval",
    Standing.RUNNING: "is running",
    Standing.DUE: "is scheduled",
    Standing.WAITING: "is on",
    Standing.OFF: "is off",
}
"""The end of the sentence that begins with the name."""
QUESTIONS = {
    "run": "Run",
    "on": "Switch on",
    "off": "Switch off",
    "approve": "Approve the run of",
    "cancel": "Cancel the run of",
    "delete": "Delete",
}


async def automations(session: Session, rest: str) -> None:
    """Say how the automations stand; with a word, do that with one."""
    store = session.services.current.automations
    word, _, name = rest.partition(" ")
    if rest == NEW:
        await _create(session)
        return
    await store.refresh()
    known = store.ordered()
    if not known:
        session.say("No automations yet. Type automations new to create one.")
        return
    session.say(*(_line(session, number, one) for number, one in enumerate(known, 1)))
    if not rest:
        return
    with session.dialog():
        at = await session.ask_which(QUESTIONS[word], [one.name for one in known], name)
    if at is None:
        raise CanceledError
    await _do(session, word, known[at])


async def _do(session: Session, word: str, chosen: AutomationState) -> None:
    commands, name = session.services.current.automations.commands, one_line(chosen.name)
    run = chosen.newest
    match word:
        case "run":
            started = await commands.start(chosen.id, TriggerAutomation())
            session.say(f"Started a run of {name}.{_of_replica(session, started.workspace_id)}")
        case "on" | "off":
            await commands.switch(chosen.id, word == "on")
            session.say(f"Switched {name} {word}.")
        case "approve":
            if run is None or not run.awaiting_approval:
                session.say(f"No run of {name} waits for approval.")
                return
            await commands.approve(chosen.id, run.id)
            session.say(f"Approved the run of {name}.")
        case "cancel":
            if run is None or not under_way(run):
                session.say(f"No run of {name} is in progress.")
                return
            await commands.cancel(chosen.id, run.id)
            session.say(f"Canceled the run of {name}.")
        case _:
            session.say(f"Deletes {name} and its runs. Their replicas are kept.")
            await session.confirm(f"Delete {name}?")
            await commands.delete(chosen.id)
            session.say(f"Deleted {name}.")


def _line(session: Session, number: int, one: AutomationState) -> str:
    problem = f": {one_line(one.problem)}" if one.problem else ""
    due = one.next_at
    later = f" Next run {due.astimezone():%Y-%m-%d %H:%M %Z}." if due else ""
    replica = _of_replica(session, one.newest.workspace_id if one.newest else None)
    line = f"{number}. {one_line(one.name)} {STANDINGS[one.standing]}{problem}"
    return f"{line.rstrip('.')}.{later}{replica}"


def _of_replica(session: Session, id: UUID | None) -> str:
    state = session.services.get(id)
    return f" Its replica is {name_line(state.full_name)}." if state else ""


async def _create(session: Session) -> None:
    app_state = session.services.current
    book = EnvironmentBook(app_state)
    await book.read()
    offered = await choices(app_state.client)
    with session.dialog():
        session.say("New automation. Type cancel to leave.")
        name = await _ask_name(session)
        environment = await _ask_environment(session, book, offered)
        agent = await ask_agent(session, [one for one in offered.agents if one.available])
        schedule, zone = await _ask_schedule(session)
        prompt = await session.ask_text("Prompt")
    if not prompt:
        raise CanceledError
    draft = AutomationDraft(
        name=name,
        environment_id=environment.id,
        agent_provider=agent,
        schedule=schedule,
        timezone=zone,
        prompt=prompt,
    )
    created = await save_draft(app_state.client, app_state.automations.commands, draft, None)
    state = app_state.automations.take(created)
    how = f" {STANDINGS[state.standing]}" if schedule else " runs when you type automations run"
    session.say(f"Created. {one_line(created.name)}{how}.")


async def _ask_name(session: Session) -> str:
    """Return a name that no other automation has."""
    while name := await session.ask("Name:"):
        try:
            await check_name_is_free(session.services.current.client, name)
        except InvalidRequestError as error:
            session.say(str(error))
        else:
            return name
    raise CanceledError


async def _ask_environment(
    session: Session, book: EnvironmentBook, offered: CreationChoices
) -> Environment:
    """Return an environment: by default one of the repository here, else the global one."""
    known, here = book.ordered(), session.here.repository
    usual = next(iter(offered.of_repository(here) if here else ()), known[0])
    return await choose(session, "environment", known, one_line(usual.name)) or usual


async def _ask_schedule(session: Session) -> tuple[str | None, str]:
    """Return a cron expression, None for no schedule, and its time zone."""
    schedule = zone = ""
    while not schedule:
        schedule = await session.ask("Schedule, such as 0 9 * * 1-5 (Enter for none):")
        if not schedule:
            return None, "UTC"
        if problem := coming(schedule, "UTC", utc_now(), 1).problem:
            session.say(problem)
            schedule = ""
    while not zone:
        zone = await session.ask("Time zone (Enter for UTC):") or "UTC"
        if problem := coming(schedule, zone, utc_now(), 1).problem:
            session.say(problem)
            zone = ""
    return schedule, zone
