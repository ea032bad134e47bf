"""The known agents."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from quarterdeck import __version__
from quarterdeck.agents.acp.driver import AcpDriver
from quarterdeck.agents.availability import (
    VERSIONS,
    VersionQuestion,
    entry_of,
    install_command,
    need_of,
    no_key,
    not_installed,
)
from quarterdeck.agents.codex.session import CodexDriver
from quarterdeck.agents.port import AgentCatalog, AgentDriver, AgentStatus, AgentUnavailableError
from quarterdeck.agents.presets import AgentProtocol, Preset, load_presets
from quarterdeck.wire.agents import BUILTIN, OwnAgent


def all_presets(own: Mapping[str, OwnAgent]) -> dict[str, Preset]:
    """Return the release's agents, then configured ones, and the built-in one last."""
    presets = dict(load_presets())
    builtin = presets.pop(BUILTIN)
    return {**presets, **{id: _own_preset(agent) for id, agent in own.items()}, BUILTIN: builtin}


def programs_of(own: Mapping[str, OwnAgent]) -> tuple[str, ...]:
    """Return the programs of agents, except those that ship with this package."""
    presets = all_presets(own).values()
    return tuple(preset.command[0] for preset in presets if not preset.ships_with_us)


def saved_patterns() -> list[str]:
    """Return patterns of the files below the home directory that hold sessions of known agents."""
    return [
        pattern.replace("{session}", "*")
        for preset in load_presets().values()
        for pattern in (*(preset.sessions or ()), *preset.saved, preset.traps.session_files)
        if pattern
    ]


def own_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the keys set in an environment as `NAME=KEY`, by the agent that gets them."""
    names = {id: preset.own_key(environment) for id, preset in load_presets().items()}
    return {id: f"{name}={environment[name]}" for id, name in names.items() if name}


def _own_preset(agent: OwnAgent) -> Preset:
    return Preset(**agent.model_dump(exclude={"shown", "instructions"}))


_VERSIONS_SECONDS = 1.0
"""How long the first call waits for programs to print their version, in seconds."""


class PresetCatalog:
    """Known agents, checked against one environment. Implements `AgentCatalog`.

    Args:
        environment: where programs and keys are searched.
        host: agents are installed here but run elsewhere, so keys and logins found here do not
            count: replicas do not see them.
        keyed: agents whose process receives a key.
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
        """Return every known agent, usable or not, with the reason. Blocking.

        A program outside a package is run once to get its version.
        """
        programs = {id: self._program(preset) for id, preset in self._presets.items()}
        installed = {id: program for id, program in programs.items() if program is not None}
        questions = [self._question(id, program) for id, program in installed.items()]
        versions = dict(zip(installed, VERSIONS.find(questions, _VERSIONS_SECONDS), strict=True))
        obstacles = self._cannot_run(installed)
        return [
            self._status(id, programs[id], versions.get(id), obstacles.get(id))
            for id in self._presets
        ]

    def driver(self, agent_id: str) -> AgentDriver:
        """Return the driver of an agent.

        A missing program or key is reported when a session is opened, by the session's environment.

        Raises:
            AgentUnavailableError: no agent has this id.
        """
        preset = self._presets.get(agent_id)
        if preset is None:
            names = ", ".join(self._presets)
            raise AgentUnavailableError(f"There is no agent {agent_id!r}. Known agents: {names}.")
        return CodexDriver(preset) if preset.protocol is AgentProtocol.CODEX else AcpDriver(preset)

    def supports_goal(self, agent_id: str) -> bool:
        """Return whether chats of this agent can have a goal."""
        preset = self._presets.get(agent_id)
        return preset is not None and preset.supports_goal

    def native_goals(self, agent_id: str) -> bool:
        """Return whether this agent has native goals."""
        preset = self._presets.get(agent_id)
        return preset is not None and preset.native_goals

    def _program(self, preset: Preset) -> Path | None:
        program = preset.program(self._environment)
        return None if program is None else Path(program)

    def _question(self, agent_id: str, program: Path) -> VersionQuestion:
        preset = self._presets[agent_id]
        return VersionQuestion(
            program,
            preset.version_arguments,
            preset.environment,
            self._environment.get("PATH", ""),
            entry_of(preset.command),
        )

    def _cannot_run(self, programs: Mapping[str, Path]) -> dict[str, str | None]:
        """Return why programs cannot run here, of those that need Node.js."""
        path = self._environment.get("PATH", "")
        needs = {id: need for id, program in programs.items() if (need := need_of(program, path))}
        versions = VERSIONS.find(
            [need.question(path) for need in needs.values()], _VERSIONS_SECONDS
        )
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
            supports_steer=preset.protocol is AgentProtocol.CODEX,
            configured=agent_id not in load_presets(),
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
        """Return the way in which the agent gets access to its model here."""
        if agent_id in self._keyed:
            return "api_key"
        if self._host:
            return None
        if preset.key_found(self._environment):
            return "api_key"
        logged_in = preset.logged_in(self._environment) or preset.configured(self._environment)
        return "login" if logged_in else None

    def _obstacle(
        self, agent_id: str, preset: Preset, installed: bool, access: str | None
    ) -> str | None:
        if not installed:
            return not_installed(preset, install_command(agent_id, preset))
        if preset.keys and access is None:
            return no_key(preset, agent_id if self._host else None) + self._unseen_login(preset)
        return None

    def _unseen_login(self, preset: Preset) -> str:
        logged_in = self._host and preset.logged_in(self._environment)
        return " The login found on this machine is not shown to replicas." if logged_in else ""

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
    """Return the release's agents and configured ones, checked against `environment`.

    Args:
        environment: by default that of this process.
        own: agents of the configuration file.
        host: see `PresetCatalog`.
        keyed: see `PresetCatalog`.
    """
    variables = os.environ if environment is None else environment
    return PresetCatalog(all_presets(own or {}), variables, host, keyed)
