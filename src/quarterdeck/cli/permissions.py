"""Options for permission rules, and `qd replica permissions`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from quarterdeck.cli.lookup import with_replica
from quarterdeck.cli.options import Common, combined, common_options, replica_argument
from quarterdeck.cli.output import print_json, print_table, print_text, safe_line
from quarterdeck.command_rules import CommandRule, PatternError
from quarterdeck.wire.permissions import (
    ChangePermissions,
    PermissionPolicy,
    PermissionRule,
    ReplicaPermissions,
    cost_limit_words,
    read_cost_limit,
)

if TYPE_CHECKING:
    from quarterdeck.client import Client

POLICIES = [policy.value for policy in PermissionPolicy]
_INHERITED = "environment"
_NONE = "none"


class _Pattern(click.ParamType[str]):
    name = "pattern"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            CommandRule(True, str(value))
        except PatternError as e:
            self.fail(str(e), param, ctx)
        return str(value)


class _Dollars(click.ParamType[float | str]):
    """An amount in dollars, or one of some words."""

    name = "dollars"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        if value in self._words:
            return value
        try:
            limit = read_cost_limit(str(value))
        except ValueError as e:
            self.fail(str(e), param, ctx)
        if limit is None:  # a variable of the shell that is not set must not remove the limit
            self.fail("No amount was given.", param, ctx)
        return limit


cost_limit_option = click.option(
    "--cost-limit",
    metavar="DOLLARS",
    type=_Dollars(_NONE),
    help="Stop a replica's agents once they have cost this much; none: no limit.",
)
"""`cost_limit`: dollars, or `none`."""


def dollars_of(given: float | str) -> float:
    """Return the option's value for the service, where 0 means no limit."""
    return 0.0 if given == _NONE else float(given)


rule_options = combined(
    click.option(
        "--allow",
        metavar="PATTERN",
        type=_Pattern(),
        multiple=True,
        help="Allow commands without asking, such as 'git status *'.",
    ),
    click.option(
        "--reject",
        metavar="PATTERN",
        type=_Pattern(),
        multiple=True,
        help="Reject commands that begin so, such as 'git push'.",
    ),
)
"""`allow` and `reject`; both may be repeated."""

remove_rule_option = click.option(
    "--remove-rule", metavar="PATTERN", multiple=True, help="Remove the rules with this pattern."
)


def rules_of(allow: Sequence[str], reject: Sequence[str]) -> list[PermissionRule]:
    """Return the rules of the options."""
    return [
        *(PermissionRule(action="allow", pattern=pattern) for pattern in allow),
        *(PermissionRule(action="reject", pattern=pattern) for pattern in reject),
    ]


def shown_rules(rules: Iterable[PermissionRule]) -> str:
    """Return rules in one line."""
    return ", ".join(rule.line for rule in rules)


@click.command(name="permissions")
@click.option(
    "--policy",
    type=click.Choice([*POLICIES, _INHERITED]),
    help="What agents may do without asking; environment: as its environment says.",
)
@click.option(
    "--cost-limit",
    metavar="DOLLARS",
    type=_Dollars(_NONE, _INHERITED),
    help="Stop its agents once they have cost this much; none: no limit; "
    "environment: the environment's limit.",
)
@rule_options
@remove_rule_option
@replica_argument
@common_options
def permissions(
    common: Common,
    replica: str,
    policy: str | None,
    cost_limit: float | str | None,
    allow: tuple[str, ...],
    reject: tuple[str, ...],
    remove_rule: tuple[str, ...],
) -> None:
    """Show what agents may do without asking, and what they may cost, or change that."""
    given: dict[str, Any] = {}
    if policy is not None:
        given["policy"] = None if policy == _INHERITED else policy
    if cost_limit is not None:
        given["cost_limit"] = None if cost_limit == _INHERITED else dollars_of(cost_limit)
    if allow or reject:
        given["add_rules"] = rules_of(allow, reject)

    async def work(client: "Client", replica_id: UUID) -> ReplicaPermissions:
        if remove_rule:
            own = (await client.permissions.get(replica_id)).rules
            given["remove_rules"] = [rule for rule in own if rule.pattern in remove_rule]
        if not given:
            return await client.permissions.get(replica_id)
        return await client.permissions.change(replica_id, ChangePermissions(**given))

    answer = with_replica(common, replica, work)
    if common.json:
        print_json(answer)
        return
    origin = "replica" if answer.policy else "environment"
    print_text(f"policy   {answer.effective.policy} (of the {origin})")
    if chosen := answer.chosen_cost_limit():
        limit, owner = chosen
        print_text(f"cost     {cost_limit_words(limit)} (of the {owner})")
    rows = [
        [rule.action, safe_line(rule.pattern), origin]
        for origin, rules in (
            ("environment", answer.environment.rules),
            ("replica", answer.rules),
        )
        for rule in rules
    ]
    if rows:
        print_table(["RULE", "PATTERN", "OF"], rows)
