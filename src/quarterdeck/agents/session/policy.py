"""Answers permission requests by the workspace's permission policy, in place of a person.

A driver describes what is requested as a `ProposedCall`. What it does not describe only a person
answers: questions, forms, plans, and requests that ask for more than a single call.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from quarterdeck.agents.objects import as_object
from quarterdeck.command_rules import Judgement, command_in, judge, runs_command_alone
from quarterdeck.wire.permissions import PermissionPolicy, Permissions

_EXECUTE, _EDIT, _CHANGES_MODE = "execute", "edit", "switch_mode"
_PATH_FIELDS = ("path", "file_path", "filePath", "abs_path", "notebook_path")


@dataclass(frozen=True)
class ProposedCall:
    """A call that an agent asks permission for, as far as a policy can judge it."""

    allow: str | None
    """The option that allows the call once; None where no option is only that."""
    reject: str | None
    """The option that rejects the call."""
    command: str | Sequence[str] | None = None
    """The command line, or the words of the command; None where it is not known."""
    runs: bool = False
    """Whether the call runs a command."""
    is_whole: bool = False
    """Whether the call runs its command and nothing else."""
    edited: Sequence[str] = ()
    """The files that it edits, when it does nothing else."""
    tool_call: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The call as it is recorded."""


@dataclass(frozen=True)
class PolicyAnswer:
    """The answer of a policy: an option, and how it is recorded."""

    option: str
    payload: dict[str, Any]


Policy = Callable[[ProposedCall], PolicyAnswer | None]
"""Returns the answer to a call; None where a person decides."""


def propose(
    tool_call: Mapping[str, Any], options: Sequence[Mapping[str, Any]]
) -> ProposedCall | None:
    """Describe a permission request of the Agent Client Protocol; None for one about no call."""
    kind = tool_call.get("kind")
    if not tool_call.get("toolCallId") or kind == _CHANGES_MODE:  # that approves a plan
        return None
    allowing, rejecting = (
        [str(option.get("optionId")) for option in options if option.get("kind") == wanted]
        for wanted in ("allow_once", "reject_once")
    )
    given = as_object(tool_call.get("rawInput"))
    return ProposedCall(
        # Several are the answers to a question.
        allow=allowing[0] if len(allowing) == 1 else None,
        reject=rejecting[0] if rejecting else None,
        command=command_in(given),
        runs=kind == _EXECUTE,
        is_whole=runs_command_alone(kind, given),
        edited=_edited(tool_call, given) if kind == _EDIT else (),
        tool_call=tool_call,
    )


def _edited(tool_call: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    named = [given.get(name) for name in _PATH_FIELDS]
    for name in ("locations", "content"):
        parts = tool_call.get(name)
        if isinstance(parts, list):
            named += [as_object(part).get("path") for part in cast("list[object]", parts)]
    return [path for path in named if isinstance(path, str)]


class PolicyJudge:
    """The permission policy of a workspace. `directory` is where the agent works."""

    def __init__(self, read: Callable[[], Permissions], workspace: str, directory: str) -> None:
        self._read = read
        self._workspace = workspace
        self._directory = directory
        self.plans = False
        """Whether the agent plans: then nothing is allowed without a person."""

    def answer(self, call: ProposedCall) -> PolicyAnswer | None:
        """Return the policy's answer; None where a person decides."""
        permissions = self._read()
        judgement = self._judge(call, permissions)
        if any(not rule.allows for rule in judgement.rules):
            return _answer(call.reject, call, "Rejected", judgement)
        if self.plans or judgement.doubtful:
            return None
        if judgement.rules and call.is_whole:
            return _answer(call.allow, call, "Allowed", judgement)
        match permissions.policy:
            case PermissionPolicy.ALL:
                return _answer(call.allow, call, "Allowed", PermissionPolicy.ALL)
            case PermissionPolicy.EDITS if call.edited and all(map(self._is_inside, call.edited)):
                return _answer(call.allow, call, "Allowed", PermissionPolicy.EDITS)
            case _:
                return None

    @staticmethod
    def _judge(call: ProposedCall, permissions: Permissions) -> Judgement:
        rules = [rule.rule for rule in permissions.rules]
        if call.command is None:
            return Judgement(doubtful=call.runs and any(not rule.allows for rule in rules))
        return judge(call.command, rules)

    def _is_inside(self, path: str) -> bool:
        """Return whether a path is that of a file in the workspace, and of none that is run by itself.

        Hidden directories hold hooks of git and settings of agents and editors.
        """
        try:
            workspace = Path(os.path.realpath(self._workspace))
            found = Path(os.path.realpath(Path(self._directory, path)))
            return not any(part.startswith(".") for part in found.relative_to(workspace).parts)
        except (OSError, ValueError):
            return False


def _answer(
    option: str | None, call: ProposedCall, verb: str, by: Judgement | PermissionPolicy
) -> PolicyAnswer | None:
    if option is None:
        return None
    patterns = [rule.pattern for rule in by.rules] if isinstance(by, Judgement) else []
    policy = by if isinstance(by, PermissionPolicy) else None
    named = ", ".join(f"`{pattern}`" for pattern in patterns) or f"`{policy}`"
    kind = "policy" if policy else "rule" if len(patterns) == 1 else "rules"
    payload = {
        "toolCall": dict(call.tool_call),
        "allowed": verb == "Allowed",
        **({"policy": policy.value} if policy else {"rules": patterns}),
        "text": f"{verb} by the {kind} {named}",
    }
    return PolicyAnswer(option, payload)
