"""Environments: list and show them, create and delete them, set and remove their variables."""

import asyncio
from collections.abc import Iterator

from quarterdeck.plain.creation import in_full
from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.environments import (
    Contents,
    EnvironmentBook,
    part_counts,
    parts_text,
    scope_of,
)
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.environment_parts import ChangeVariable, CreateVariable
from quarterdeck.wire.environments import CreateEnvironment, Environment

NEW = "new"
ENVIRONMENT_WORDS = (NEW, "show", "set", "unset", "delete")
"""What may follow `environments`."""


async def environments(session: Session, rest: str) -> None:
    """Say what replicas are created from; with a word, do that with one."""
    book = EnvironmentBook(session.services.current)
    await book.read()
    if rest == NEW:
        await _create(session, book)
        return
    word, _, name = rest.partition(" ")
    known = book.ordered()
    session.say(*(_line(book, number, one) for number, one in enumerate(known, 1)))
    if not rest:
        session.say("Files, skills, MCP servers and hooks are changed in a shell, by qd env.")
        return
    with session.dialog():
        at = await session.ask_which(word.capitalize(), [one.name for one in known], name)
    if at is None:
        raise CanceledError
    chosen, contents = known[at], Contents(session.services.current, book)
    match word:
        case "show":
            session.say(*await _facts(contents, chosen))
        case "set":
            await _set(session, contents, chosen)
        case "unset":
            await _unset(session, contents, chosen)
        case _:
            await _delete(session, book, chosen)


def _line(book: EnvironmentBook, number: int, one: Environment) -> str:
    facts = ", ".join([one_line(book.bound_to(one)), *part_counts(one)])
    return f"{number}. {one_line(one.name)}, {scope_of(one)}: {facts}."


async def _facts(contents: Contents, chosen: Environment) -> list[str]:
    parts = (
        ("Variable", [(one, one.record.key) for one in await contents.variables(chosen)]),
        ("File", [(one, one.record.path) for one in await contents.files(chosen)]),
        ("Skill", [(one, one.record.slug) for one in await contents.skills(chosen)]),
        ("MCP server", [(one, one.record.name) for one in await contents.mcps(chosen)]),
    )
    lines = [
        f"{what} {one_line(name)}" + ("." if one.own else f", of {one_line(one.of.name)}.")
        for what, named in parts
        for one, name in named
    ]
    return lines or ["It has no variables, files, skills or MCP servers."]


async def _create(session: Session, book: EnvironmentBook) -> None:
    here = session.here.repository
    hint = f"Enter for {one_line(here)}, - for none" if here else "Enter for none"
    with session.dialog():
        name = await session.ask("Name:")
        if not name:
            raise CanceledError
        typed = await session.ask(f"Repository, a path or git URL ({hint}):")
    url = None if typed == "-" else await asyncio.to_thread(in_full, typed) if typed else here
    repository = await book.connect(url) if url else None
    wanted = CreateEnvironment(name=name, repository_id=repository.id if repository else None)
    created = await book.create(wanted)
    session.say(f"Created {one_line(created.name)}.")


async def _set(session: Session, contents: Contents, chosen: Environment) -> None:
    with session.dialog():
        key = await session.ask("Variable:")
        value = await session.console.line("Value, not shown:", secret=True) if key else None
    if not key or value is None:
        raise CanceledError
    own = {one.record.key: one.record for one in await contents.variables(chosen) if one.own}
    if key in own:
        await contents.change_variable(chosen, own[key].id, ChangeVariable(value=value))
    else:
        await contents.add_variable(chosen, CreateVariable(key=key, value=value))
    session.say(f"Set {key}. Replicas have it from their next start.")


async def _unset(session: Session, contents: Contents, chosen: Environment) -> None:
    own = [one.record for one in await contents.variables(chosen) if one.own]
    if not own:
        session.say("It has no variables of its own.")
        return
    with session.dialog():
        session.say(*_numbered([one.key for one in own]))
        number = await session.ask_number("Remove which (Enter to cancel):", len(own))
    if number is None:
        raise CanceledError
    await contents.delete_variable(chosen, own[number - 1].id)
    session.say(f"Removed {own[number - 1].key}.")


def _numbered(names: list[str]) -> Iterator[str]:
    return (f"{number}. {one_line(name)}" for number, name in enumerate(names, 1))


async def _delete(session: Session, book: EnvironmentBook, chosen: Environment) -> None:
    name = one_line(chosen.name)
    with session.dialog():
        session.say(f"Deletes {name} with {parts_text(chosen)}.")
        if await session.ask(f"Type {name} to delete it:") != name:
            raise CanceledError
    await book.delete(chosen.id)
    session.say(f"Deleted {name}.")
