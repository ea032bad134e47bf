"""Which agents there are, which of them can be used here, and how each is driven."""

import os
from collections.abc import Mapping

from quarterdeck.agents.acp.driver import AcpDriver
from quarterdeck.agents.port import AgentCatalog, AgentDriver, AgentStatus, AgentUnavailableError
from quarterdeck.agents.presets import AgentProtocol, Preset, load_presets


class PresetCatalog:
    """The agents of `presets.toml`, judged against one environment. Implements `AgentCatalog`."""

    def __init__(self, presets: Mapping[str, Preset], environment: Mapping[str, str]) -> None:
        self._presets = presets
        self._environment = environment

    def statuses(self) -> list[AgentStatus]:
        """Every known agent, usable or not, with the reason. Starts no process."""
        return [self._status(agent_id, preset) for agent_id, preset in self._presets.items()]

    def driver(self, agent_id: str) -> AgentDriver:
        """The driver of an agent.

        A missing program or key is found when a session is opened, in the session's environment.

        Raises:
            AgentUnavailableError: no agent has this id, or nothing here drives its protocol.
        """
        preset = self._presets.get(agent_id)
        if preset is None:
            known = ", ".join(self._presets)
            raise AgentUnavailableError(f"There is no agent {agent_id!r}. Known agents: {known}.")
        if preset.protocol is not AgentProtocol.ACP:
            raise AgentUnavailableError(_no_driver(preset))
        return AcpDriver(preset)

    def supports_goal(self, agent_id: str) -> bool:
        """Whether chats of this agent can have a goal."""
        preset = self._presets.get(agent_id)
        return preset is not None and preset.supports_goal

    def _status(self, agent_id: str, preset: Preset) -> AgentStatus:
        key = preset.key_found(self._environment)
        reason = self._obstacle(preset, key)
        return AgentStatus(
            id=agent_id,
            name=preset.name,
            available=reason is None,
            reason=reason,
            auth_method="api_key" if key else None,
            supports_goal=preset.supports_goal,
            supports_plan=preset.supports_plan,
            models=tuple(preset.models.items()),
            default_model=preset.default_model,
            missing_keys=preset.keys if reason == no_key(preset) else (),
        )

    def _obstacle(self, preset: Preset, key: str | None) -> str | None:
        if preset.protocol is not AgentProtocol.ACP:
            return _no_driver(preset)
        if preset.program(self._environment) is None:
            return not_installed(preset)
        if preset.keys and key is None:
            return no_key(preset)
        return None


def default_catalog(environment: Mapping[str, str] | None = None) -> AgentCatalog:
    """The agents known to this release, judged against `environment` (default: this process's)."""
    return PresetCatalog(load_presets(), os.environ if environment is None else environment)


def not_installed(preset: Preset) -> str:
    """Why an agent without a program cannot be used, and what to do."""
    hint = f" Install it with: {preset.install}" if preset.install else ""
    return f"Not installed: {preset.command[0]} is not on the PATH.{hint}"


def no_key(preset: Preset) -> str:
    """Why an agent without a key cannot be used, and what to do."""
    return f"No key: set the variable {' or '.join(preset.keys)}."


def _no_driver(preset: Preset) -> str:
    return (
        f"{preset.name} speaks a protocol that this version cannot drive yet. Choose another agent."
    )
