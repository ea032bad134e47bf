"""The open replica: put it to sleep, archive, delete or rewind it, run a command in it, set its permissions."""

from collections.abc import Iterator, Sequence
from typing import Literal

from quarterdeck.command_rules import CommandRule, PatternError
from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.exec_runs import SECONDS
from quarterdeck.store.losses import what_goes, what_rests, what_rewinds, what_stops
from quarterdeck.transcript.text import clean_output, name_line, one_line
from quarterdeck.wire.git import Checkpoint
from quarterdeck.wire.permissions import (
    POLICIES,
    ChangePermissions,
    PermissionPolicy,
    PermissionRule,
    ReplicaPermissions,
    cost_limit_words,
    read_cost_limit,
)


async def sleep(session: Session, _: str) -> None:
    """Stop the replica's processes, and keep its files."""
    replica = session.replica
    if replica is None:
        return
    commands = session.app_state.commands
    await commands.read_programs([replica])
    if stopped := what_stops([replica]):
        session.say(stopped)
        await session.confirm("Put it to sleep?")
    await commands.sleep(replica.id)


async def archive(session: Session, _: str) -> None:
    """Pack the replica's files away."""
    replica = session.replica
    if replica is None:
        return
    commands = session.app_state.commands
    await commands.read_resting([replica])
    await commands.read_programs([replica])
    if known := what_rests([replica]):
        session.say(known)
        await session.confirm("Archive it?")
    await commands.archive(replica.id)


async def delete(session: Session, _: str) -> None:
    """Delete the replica, once its name has been typed."""
    replica = session.replica
    if replica is None:
        return
    commands = session.app_state.commands
    await commands.read_resting([replica])
    name = name_line(replica.full_name)
    with session.dialog():
        session.say(what_goes([replica]))
        if await session.ask(f"Type {name} to delete it:") != name:
            raise CanceledError
    await commands.delete(replica.id)


async def wake(session: Session, _: str) -> None:
    """Start the replica again."""
    if session.replica is not None:
        await session.app_state.commands.wake(session.replica.id)


MOST_CHECKPOINTS = 20
"""Checkpoints that are listed at once."""


async def rewind(session: Session, _: str) -> None:
    """List the checkpoints, and restore the files of the one that is chosen."""
    replica = session.replica
    if replica is None:
        return
    if not replica.record.repositories:
        session.say("The replica has no repository.")
        return
    commands = session.app_state.commands
    checkpoints = await commands.checkpoints(replica.id)
    if not checkpoints:
        session.say("No checkpoints yet. Each turn of the agent starts with one.")
        return
    with session.dialog():
        checkpoint = await _choose_checkpoint(session, checkpoints)
        chat = await session.ask_yes("Inform the agent?", usual=True)
        changes = await commands.changes_since(replica.id, checkpoint)
        session.say(what_rewinds(checkpoint, changes, chat=chat))
    await session.confirm(f"Rewind to {_checkpoint_text(checkpoint)}?")
    await commands.rewind(replica.id, checkpoint.id, chat=chat)
    session.say(
        f"Restored the files of {_moment(checkpoint)}.",
        'To undo it, type rewind and choose the checkpoint "Before a rewind".',
    )


async def _choose_checkpoint(session: Session, checkpoints: Sequence[Checkpoint]) -> Checkpoint:
    """Ask for a checkpoint; Enter lists earlier ones.

    Raises:
        CanceledError: none was chosen.
    """
    listed = 0
    while listed < len(checkpoints):
        page = checkpoints[listed : listed + MOST_CHECKPOINTS]
        session.say(
            *(f"{number}. {_checkpoint_text(one)}" for number, one in enumerate(page, listed + 1))
        )
        listed += len(page)
        enter = "for earlier ones" if listed < len(checkpoints) else "to cancel"
        number = await session.ask_number(f"Rewind to which (Enter {enter}):", listed)
        if number is not None:
            return checkpoints[number - 1]
    raise CanceledError


def _checkpoint_text(checkpoint: Checkpoint) -> str:
    return f'{_moment(checkpoint)}, "{one_line(checkpoint.title) or checkpoint.id}"'


def _moment(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.at.astimezone():%d %b %H:%M:%S}"


async def execute(session: Session, command: str) -> None:
    """Run a command, or one that is asked for, and print its output."""
    replica = session.replica
    if replica is None:
        return
    if not command:
        with session.dialog():
            command = await session.ask(f"Command (stopped after {SECONDS} seconds):")
    if not command:
        raise CanceledError
    runs = session.app_state.exec_runs
    run = runs.start(replica.id, command)
    try:
        await session.until(lambda: not run.running)
    finally:
        runs.interrupt(run)  # of one that has ended nothing comes
    if run.response is None:
        session.say(one_line(run.problem))
        return
    if run.response.truncated:
        session.say("Only the end of the output is kept.")
    session.say(*clean_output(run.response.output).splitlines())
    if run.response.timed_out:
        session.say(f"Stopped after {SECONDS} seconds.")
    else:
        session.say(f"Ended with exit status {run.response.exit_code}.")


INHERITED = "environment"
"""Selects the policy of the replica's environment."""
PERMISSION_WORDS = (
    *(policy.value for policy in PermissionPolicy),
    INHERITED,
    "allow",
    "reject",
    "remove",
    "cost",
)
"""What may follow `permissions`."""


async def permissions(session: Session, rest: str) -> None:
    """Say what is answered without asking; with a word, change it."""
    replica = session.replica
    if replica is None:
        return
    commands = session.app_state.commands
    match rest:
        case "":
            session.say(*_permission_lines(await commands.permissions(replica.id)))
            session.say(
                "To change the policy, type permissions and ask, edits, all or environment; "
                "for the rules, permissions and allow, reject or remove; for the cost limit, "
                "permissions cost."
            )
            return
        case "allow" | "reject":
            change = ChangePermissions(add_rules=[await _ask_rule(session, rest)])
        case "remove":
            rules = (await commands.permissions(replica.id)).rules
            if not rules:
                session.say("The replica has no rules of its own.")
                return
            change = ChangePermissions(remove_rules=[await _choose_rule(session, rules)])
        case "cost":
            change = ChangePermissions(cost_limit=await _ask_cost_limit(session))
        case _:
            change = ChangePermissions(policy=None if rest == INHERITED else PermissionPolicy(rest))
    session.say(*_permission_lines(await commands.change_permissions(replica.id, change)))


async def _ask_rule(session: Session, action: Literal["allow", "reject"]) -> PermissionRule:
    """Ask for the command of a new rule until it is one."""
    question = {
        "allow": "Command to allow; a * at the end allows any further words:",
        "reject": "Reject all commands that begin with:",
    }[action]
    with session.dialog():
        while True:
            pattern = await session.ask(question)
            try:
                CommandRule(True, pattern)
            except PatternError as error:
                session.say(str(error))
            else:
                return PermissionRule(action=action, pattern=pattern)


async def _ask_cost_limit(session: Session) -> float | None:
    """Ask for a cost limit until it is one."""
    with session.dialog():
        while True:
            text = await session.ask(
                "Dollars that its agents may cost (0 for no limit, empty for the environment's limit):"
            )
            try:
                return read_cost_limit(text)
            except ValueError as error:
                session.say(str(error))


async def _choose_rule(session: Session, rules: list[PermissionRule]) -> PermissionRule:
    with session.dialog():
        session.say(*_numbered_rules(rules))
        number = await session.ask_number("Remove which (Enter to cancel):", len(rules))
    if number is None:
        raise CanceledError
    return rules[number - 1]


def _permission_lines(permissions: ReplicaPermissions) -> Iterator[str]:
    policy, environment = permissions.effective.policy, permissions.environment
    origin = "" if permissions.policy else " of the environment"
    yield f"Policy{origin}: {policy}, {POLICIES[policy]}."
    if chosen := permissions.chosen_cost_limit():
        limit, owner = chosen
        origin = " of the environment" if owner == "environment" else ""
        yield f"Cost limit{origin}: {cost_limit_words(limit)}."
    yield from _numbered_rules(permissions.rules)
    yield from (f"Of the environment: {one_line(rule.line)}" for rule in environment.rules)
    if not (permissions.rules or environment.rules):
        yield "No rules."


def _numbered_rules(rules: list[PermissionRule]) -> Iterator[str]:
    return (f"{number}. {one_line(rule.line)}" for number, rule in enumerate(rules, 1))
