"""The permission policy, rules and cost limit of a replica: what applies, and how to change it."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from textual.screen import Screen

from quarterdeck.command_rules import CommandRule, PatternError
from quarterdeck.store.commands import Commands
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.text import name_line
from quarterdeck.tui.kit.dialogs import AskField, AskScreen, Choice, ChooseScreen, WrongFieldError
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.wire.permissions import (
    POLICIES,
    ChangePermissions,
    PermissionPolicy,
    PermissionRule,
    ReplicaPermissions,
    cost_limit_words,
    read_cost_limit,
)

_REMOVE = "remove "


async def permission_dialogs(screen: Screen[Any], commands: Commands, state: ReplicaState) -> None:
    """Show the policy and rules, and change them until the dialog is closed.

    Raises:
        ClientError: they cannot be read or changed.
    """
    with hold_keys(screen, "Reading the permissions"):
        permissions = await commands.permissions(state.id)
    title = f"Permissions of {name_line(state.name)}"
    while True:
        choices = ChooseScreen(title, list(_choices(permissions)))
        change: ChangePermissions | None
        match await screen.app.push_screen_wait(choices):
            case None:
                return
            case "policy":
                change = await _choose_policy(screen, permissions)
            case ("allow" | "reject" | "cost") as action:
                dialog = (
                    _cost_screen(commands, state, permissions)
                    if action == "cost"
                    else _rule_screen(commands, state, action)
                )
                await screen.app.push_screen_wait(dialog)
                permissions = await commands.permissions(state.id)
                continue
            case chosen:
                removed = permissions.rules[int(chosen.removeprefix(_REMOVE))]
                change = ChangePermissions(remove_rules=[removed])
        if change is not None:
            with hold_keys(screen, "Changing the permissions"):
                permissions = await commands.change_permissions(state.id, change)


def _choices(permissions: ReplicaPermissions) -> Iterator[Choice]:
    policy = permissions.effective.policy
    origin = "" if permissions.policy else " (environment)"
    yield Choice("policy", f"Policy: {policy}, {POLICIES[policy]}{origin}")
    yield Choice("cost", _cost_label(permissions))
    for number, rule in enumerate(permissions.rules):
        yield Choice(f"{_REMOVE}{number}", f"Remove the rule: {rule.line}")
    for rule in permissions.environment.rules:
        label = f"{rule.line} (environment)"
        yield Choice(label, label, usable=False)
    yield Choice("allow", "Add a rule that allows commands")
    yield Choice("reject", "Add a rule that rejects commands")


def _cost_label(permissions: ReplicaPermissions) -> str:
    chosen = permissions.chosen_cost_limit()
    if chosen is None:
        return "Set a cost limit"
    limit, owner = chosen
    origin = " (environment)" if owner == "environment" else ""
    return f"Cost limit: {cost_limit_words(limit)}{origin}"


async def _choose_policy(
    screen: Screen[Any], permissions: ReplicaPermissions
) -> ChangePermissions | None:
    choices = [Choice(policy.value, f"{policy}: {words}") for policy, words in POLICIES.items()]
    inherited = permissions.environment.policy
    choices.append(Choice("", f"As the environment says: {inherited}"))
    chosen = await screen.app.push_screen_wait(ChooseScreen("Permission policy", choices))
    if chosen is None:
        return None
    return ChangePermissions(policy=PermissionPolicy(chosen) if chosen else None)


def _cost_screen(
    commands: Commands, state: ReplicaState, permissions: ReplicaPermissions
) -> AskScreen:
    """Return the dialog that asks for the cost limit."""

    async def change(values: Mapping[str, str]) -> None:
        try:
            limit = read_cost_limit(values["limit"])
        except ValueError as error:
            raise WrongFieldError("limit", str(error)) from error
        await commands.change_permissions(state.id, ChangePermissions(cost_limit=limit))

    limit = permissions.cost_limit
    shown = "" if limit is None else str(limit).removesuffix(".0")
    label = "Dollars; 0 for no limit, empty for the environment's limit"
    return AskScreen("Cost limit", [AskField("limit", label, shown, "5.00")], change, "save")


def _rule_screen(
    commands: Commands, state: ReplicaState, action: Literal["allow", "reject"]
) -> AskScreen:
    """Return the dialog that asks for the command of a new rule."""

    async def add(values: Mapping[str, str]) -> None:
        try:
            CommandRule(True, values["pattern"])
        except PatternError as error:
            raise WrongFieldError("pattern", str(error)) from error
        rule = PermissionRule(action=action, pattern=values["pattern"])
        await commands.change_permissions(state.id, ChangePermissions(add_rules=[rule]))

    if action == "allow":
        field = AskField("pattern", "Command; a * at the end allows any further words", "", "git *")
        return AskScreen("Allow commands", [field], add, "add")
    field = AskField("pattern", "Rejected are all commands that begin with", "", "git push")
    return AskScreen("Reject commands", [field], add, "add")
