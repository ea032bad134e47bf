"""Codex's permission modes: pairs of its approval policy and its sandbox.

Codex offers no list of them. Its own interface has such pairs, too; these are the ones that differ
in a replica, where its sandbox is not needed to protect the machine.
"""

from dataclasses import dataclass
from typing import Any

from quarterdeck.agents.objects import as_object
from quarterdeck.wire.chats import ChatSetting, SettingChoice, SettingValue

Params = dict[str, Any]

_FULL: Params = {"type": "dangerFullAccess"}
_WORKSPACE: Params = {"type": "workspaceWrite"}
_READ_ONLY: Params = {"type": "readOnly"}
CONFIGURED = SettingValue(id="configured", name="As configured")
"""The user's configuration is none of the modes."""


@dataclass(frozen=True)
class PermissionMode:
    """One mode."""

    choice: SettingChoice
    approvals: str
    sandbox: Params

    @property
    def settings(self) -> Params:
        """The fields of `turn/start` and of `thread/settings/update`."""
        return {"approvalPolicy": self.approvals, "sandboxPolicy": self.sandbox}


def _mode(id: str, name: str, description: str, approvals: str, sandbox: Params) -> PermissionMode:
    return PermissionMode(
        SettingChoice(id=id, name=name, description=description), approvals, sandbox
    )


_MODES = (
    _mode("read-only", "Read only", "Asks before it changes anything.", "on-request", _READ_ONLY),
    _mode("ask", "Ask first", "Asks before each command that may change something.", "untrusted", _FULL),
    _mode("workspace", "Workspace", "Asks to use the network or write elsewhere.", "on-request", _WORKSPACE),
    _mode("agent", "Agent", "Works in the whole replica, and asks when it is unsure.", "on-request", _FULL),
    _mode("full-access", "Full access", "Never asks.", "never", _FULL),
)  # fmt: skip
MODES = {mode.choice.id: mode for mode in _MODES}


class PermissionModes:
    """Follows the mode of a thread."""

    def __init__(self) -> None:
        self._current: SettingValue | None = None

    def opened(self, answer: Params) -> None:
        """Note the answer that opened the thread."""
        approvals, sandbox = answer.get("approvalPolicy"), as_object(answer.get("sandbox"))
        for mode in _MODES:
            if mode.approvals == approvals and mode.sandbox["type"] == sandbox.get("type"):
                self._current = _value(mode)
                return
        self._current = CONFIGURED

    def settings_for(self, id: str | None) -> Params:
        """Return the fields that a turn in this mode needs; none when the thread is in it already."""
        mode = MODES.get(id or "")
        if mode is None or (self._current and self._current.id == id):
            return {}
        return mode.settings

    def chosen(self, id: str | None) -> None:
        """Note that codex accepted a mode."""
        if mode := MODES.get(id or ""):
            self._current = _value(mode)

    @property
    def setting(self) -> ChatSetting:
        """The mode and the choices."""
        return ChatSetting(current=self._current, choices=[mode.choice for mode in _MODES])


def _value(mode: PermissionMode) -> SettingValue:
    return SettingValue(id=mode.choice.id, name=mode.choice.name)
