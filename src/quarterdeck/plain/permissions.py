"""The permission policy and rules of the open replica: show and change them."""

from collections.abc import Iterator
from typing import Literal

from quarterdeck.command_rules import CommandRule, PatternError
from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.permissions import (
    POLICIES,
    ChangePermissions,
    PermissionPolicy,
    PermissionRule,
    ReplicaPermissions,
)

INHERITED = "environment"
"""Selects the policy of the replica's environment."""
PERMISSION_WORDS = (
    *(policy.value for policy in PermissionPolicy),
    INHERITED,
    "allow",
    "reject",
    "remove",
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
            session.say(*_lines(await commands.permissions(replica.id)))
            session.say(
                "To change the policy, type permissions and ask, edits, all or environment; "
                "for the rules, permissions and allow, reject or remove."
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
        case _:
            change = ChangePermissions(policy=None if rest == INHERITED else PermissionPolicy(rest))
    session.say(*_lines(await commands.change_permissions(replica.id, change)))


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


async def _choose_rule(session: Session, rules: list[PermissionRule]) -> PermissionRule:
    with session.dialog():
        session.say(*_numbered(rules))
        number = await session.ask_number("Remove which (Enter to cancel):", len(rules))
    if number is None:
        raise CanceledError
    return rules[number - 1]


def _lines(permissions: ReplicaPermissions) -> Iterator[str]:
    policy, environment = permissions.effective.policy, permissions.environment
    origin = "" if permissions.policy else " of the environment"
    yield f"Policy{origin}: {policy}, {POLICIES[policy]}."
    yield from _numbered(permissions.rules)
    yield from (f"Of the environment: {one_line(rule.line)}" for rule in environment.rules)
    if not (permissions.rules or environment.rules):
        yield "No rules."


def _numbered(rules: list[PermissionRule]) -> Iterator[str]:
    return (f"{number}. {one_line(rule.line)}" for number, rule in enumerate(rules, 1))
