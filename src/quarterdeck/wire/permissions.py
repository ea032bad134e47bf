"""Permission policies: which permission requests of agents are answered without a person, and what is pushed.

docs/interface.md 4.8 describes them, `quarterdeck.command_rules` how rules match.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from quarterdeck.command_rules import LONGEST_PATTERN, CommandRule
from quarterdeck.wire.base import Body, Patch, Record

MOST_RULES = 200
"""Rules of one environment or replica."""


class PermissionPolicy(StrEnum):
    """What an agent may do without asking a person; rules come before it."""

    ASK = "ask"
    """Nothing: every permission request is a question in the chat."""
    EDITS = "edits"
    """Create and change files of the workspace."""
    ALL = "all"
    """Everything that no rule rejects."""


POLICIES = {
    PermissionPolicy.ASK: "ask for everything",
    PermissionPolicy.EDITS: "allow edits of workspace files",
    PermissionPolicy.ALL: "allow what no rule rejects",
}
"""What each policy does, for a person."""


class PushPolicy(StrEnum):
    """What `git push` inside a replica may do at the source, with the person's credentials."""

    ASK = "ask"
    """Each push is a question in the chat."""
    OWN_BRANCH = "own_branch"
    """The replica's own branch is pushed without a question, nothing else."""
    ANY = "any"
    """Every branch and tag; a force push only of the replica's own branch."""
    NEVER = "never"
    """Nothing is pushed."""


Pattern = Annotated[str, Field(min_length=1, max_length=LONGEST_PATTERN)]


class PermissionRule(Body):
    """A rule about commands. Reject rules come before allow rules."""

    action: Literal["allow", "reject"]
    """What the rule does with a command."""
    pattern: Pattern
    """Words of the command. `*` at the end stands for any further words, elsewhere for one word. A
    reject rule matches every command that begins with its words."""

    @property
    def rule(self) -> CommandRule:
        """The rule as it is matched."""
        return CommandRule(self.action == "allow", self.pattern)

    @property
    def line(self) -> str:
        """The rule as a line: its action and its pattern."""
        return f"{self.action} {self.pattern}"

    @classmethod
    def of_line(cls, line: str) -> "PermissionRule":
        """Read such a line.

        Raises:
            ValueError: it is not a rule.
        """
        action, _, pattern = line.strip().partition(" ")
        if action not in ("allow", "reject"):
            raise ValueError("A rule begins with `allow` or `reject`.")
        CommandRule(action == "allow", pattern.strip())
        return cls(action=action, pattern=pattern.strip())


def _check_rules(rules: list[PermissionRule]) -> list[PermissionRule]:
    for rule in rules:
        CommandRule(True, rule.pattern)
    return rules


Rules = Annotated[list[PermissionRule], Field(max_length=MOST_RULES), AfterValidator(_check_rules)]
"""Rules of a request. Those of an answer are not checked: a newer service may know other patterns."""


LARGEST_COST = 1_000_000.0
"""Largest cost limit in dollars."""
CostLimit = Annotated[float, Field(ge=0, le=LARGEST_COST, allow_inf_nan=False)]
"""Dollars that the agents of a replica may cost; 0 means no limit, even if the environment has one."""


def read_cost_limit(text: str) -> float | None:
    """Return the cost limit that a person typed; None for nothing.

    Raises:
        ValueError: it is not one, with a sentence for the person.
    """
    text = text.strip().removeprefix("$")
    if not text:
        return None
    try:
        limit = float(text)
    except ValueError:
        limit = -1.0
    if not 0 <= limit <= LARGEST_COST:
        raise ValueError("Not an amount in dollars, such as 5 or 2.50.")
    return limit


def cost_limit_words(limit: float | None) -> str:
    """Return a cost limit for a person; empty where none is set."""
    if limit is None:
        return ""
    return f"${limit:.2f}" if limit else "none"


def _cost_limit() -> Any:
    return Field(default=None, exclude_if=lambda limit: limit is None)


class Permissions(Record):
    """The policy and the rules that apply."""

    policy: PermissionPolicy = PermissionPolicy.ASK
    """What agents may do without asking."""
    rules: list[PermissionRule] = []
    """Rules, in the order in which they were added."""
    cost_limit: float | None = _cost_limit()
    """Dollars that the agents may cost; left out when there is no limit."""


class ReplicaPermissions(Record):
    """Answer of `GET` and `PATCH /v1/replica/{id}/permissions`."""

    policy: PermissionPolicy | None = None
    """The replica's own policy; null: that of its environment."""
    rules: list[PermissionRule] = []
    """The replica's own rules, which are added to those of its environment."""
    cost_limit: float | None = _cost_limit()
    """The replica's own limit in dollars; 0 is none; left out: that of its environment."""
    environment: Permissions
    """What its environment says."""
    effective: Permissions
    """What applies."""

    def chosen_cost_limit(self) -> tuple[float, Literal["replica", "environment"]] | None:
        """Return the cost limit, 0 for none, and whose it is; None when nobody has set one."""
        if self.cost_limit is not None:
            return self.cost_limit, "replica"
        if self.environment.cost_limit is not None:
            return self.environment.cost_limit, "environment"
        return None


class ChangePermissions(Patch):
    """Body of `PATCH /v1/replica/{id}/permissions`; what is not given stays."""

    policy: PermissionPolicy | None = None
    """The replica's own policy; null: that of its environment."""
    cost_limit: CostLimit | None = None
    """The replica's own limit in dollars; 0 is none, null that of its environment."""
    add_rules: Rules = []
    """Rules to add; those that it has already stay."""
    remove_rules: Rules = []
    """Rules to remove; those that it does not have are ignored."""
