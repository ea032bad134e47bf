"""Which agents there are, which of them can be used here, and how each is driven."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from quarterdeck import __version__
from quarterdeck.agents.acp.driver import AcpDriver
from quarterdeck.agents.codex.driver import CodexDriver
from quarterdeck.agents.known import all_presets
from quarterdeck.agents.node import need_of
from quarterdeck.agents.port import AgentCatalog, AgentDriver, AgentStatus, AgentUnavailableError
from quarterdeck.agents.presets import AgentProtocol, Preset
from quarterdeck.agents.reasons import install_command, no_key, not_installed
from quarterdeck.agents.versions import VERSIONS, Question
from quarterdeck.wire.own_agents import OwnAgent

_PATIENCE = 1.0
"""How long the first look waits for programs to say their version, in seconds."""


class PresetCatalog:
    """Known agents, judged against one environment. Implements `AgentCatalog`.

    Args:
        environment: where programs and keys are looked for.
        host: this is the machine that the agents are installed on, and not yet where they run:
            of its keys and logins nothing counts, as replicas see none of them.
        keyed: agents whose process is given a key.
    """

    def __init__(
        self,
        presets: Mapping[str, Preset],
        environment: Mapping[str, str],
        host: bool = False,
        keyed: Collection[str] = (),
    ) -> None:
        self._presets = presets
        self._environment = environment
        self._host = host
        self._keyed = keyed

    def statuses(self) -> list[AgentStatus]:
        """Every known agent, usable or not, with the reason. Blocking.

        A program that is no package is asked for its version, once.
        """
        found = {id: self._program(preset) for id, preset in self._presets.items()}
        there = {id: program for id, program in found.items() if program is not None}
        questions = [self._question(id, program) for id, program in there.items()]
        told = dict(zip(there, VERSIONS.find(questions, _PATIENCE), strict=True))
        old = self._cannot_run(there)
        return [self._status(id, found[id], told.get(id), old.get(id)) for id in self._presets]

    def driver(self, agent_id: str) -> AgentDriver:
        """The driver of an agent.

        A missing program or key is found when a session is opened, in the session's environment.

        Raises:
            AgentUnavailableError: no agent has this id.
        """
        preset = self._presets.get(agent_id)
        if preset is None:
            known = ", ".join(self._presets)
            raise AgentUnavailableError(f"There is no agent {agent_id!r}. Known agents: {known}.")
        return CodexDriver(preset) if preset.protocol is AgentProtocol.CODEX else AcpDriver(preset)

    def supports_goal(self, agent_id: str) -> bool:
        """Whether chats of this agent can have a goal."""
        preset = self._presets.get(agent_id)
        return preset is not None and preset.supports_goal

    def native_goals(self, agent_id: str) -> bool:
        """Whether this agent works towards goals by itself."""
        preset = self._presets.get(agent_id)
        return preset is not None and preset.native_goals

    def _program(self, preset: Preset) -> Path | None:
        program = preset.program(self._environment)
        return None if program is None else Path(program)

    def _question(self, agent_id: str, program: Path) -> Question:
        preset = self._presets[agent_id]
        return Question(
            program,
            preset.version_arguments,
            preset.environment,
            self._environment.get("PATH", ""),
        )

    def _cannot_run(self, programs: Mapping[str, Path]) -> dict[str, str | None]:
        """Why programs cannot run here, of those that need a Node."""
        path = self._environment.get("PATH", "")
        needs = {id: need for id, one in programs.items() if (need := need_of(one, path))}
        versions = VERSIONS.find([need.question(path) for need in needs.values()], _PATIENCE)
        return {
            id: need.obstacle(self._presets[id].name, version)
            for (id, need), version in zip(needs.items(), versions, strict=True)
        }

    def _status(
        self, agent_id: str, program: Path | None, version: str | None, cannot_run: str | None
    ) -> AgentStatus:
        preset = self._presets[agent_id]
        access = self._access(agent_id, preset)
        reason = cannot_run or self._obstacle(agent_id, preset, program is not None, access)
        return AgentStatus(
            id=agent_id,
            name=preset.name,
            available=reason is None,
            reason=reason,
            auth_method=access,
            supports_goal=preset.supports_goal,
            supports_plan=preset.supports_plan,
            models=tuple(preset.models.items()),
            default_model=preset.default_model,
            missing_keys=() if cannot_run else self._keys_missing(preset, program, access),
            logins=(*preset.logins, *preset.configurations),
            installed=program is not None,
            version=__version__ if preset.ships_with_us else version,
            install=None if preset.ships_with_us else install_command(agent_id, preset),
            login_found=preset.logged_in(self._environment),
            own_key=preset.own_key(self._environment) if self._host else None,
        )

    def _access(self, agent_id: str, preset: Preset) -> str | None:
        """By what the agent gets at its model here."""
        if agent_id in self._keyed:
            return "api_key"
        if self._host:
            return None
        if preset.key_found(self._environment):
            return "api_key"
        there = preset.logged_in(self._environment) or preset.configured(self._environment)
        return "login" if there else None

    def _obstacle(
        self, agent_id: str, preset: Preset, installed: bool, access: str | None
    ) -> str | None:
        if not installed:
            return not_installed(preset, install_command(agent_id, preset))
        if preset.keys and access is None:
            return no_key(preset, agent_id if self._host else None) + self._unseen_login(preset)
        return None

    def _unseen_login(self, preset: Preset) -> str:
        found = self._host and preset.logged_in(self._environment)
        return " The login found on this machine is not shown to replicas." if found else ""

    def _keys_missing(
        self, preset: Preset, program: Path | None, access: str | None
    ) -> tuple[str, ...]:
        return preset.keys if program is not None and access is None else ()


def default_catalog(
    environment: Mapping[str, str] | None = None,
    own: Mapping[str, OwnAgent] | None = None,
    host: bool = False,
    keyed: Collection[str] = (),
) -> AgentCatalog:
    """The agents known to this release and a person's own, judged against `environment`.

    Args:
        environment: by default that of this process.
        own: agents of the configuration file.
        host: see `PresetCatalog`.
        keyed: see `PresetCatalog`.
    """
    given = os.environ if environment is None else environment
    return PresetCatalog(all_presets(own or {}), given, host, keyed)
