"""Presets of agents and their quirks."""

import secrets
import shutil
import sys
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class Quirks(BaseModel):
    """The `traps` of one agent in `presets.toml`; none when left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stdio_mcp_arguments: tuple[str, ...] = ()
    """It accepts tool servers over stdio only at start; {file} is a file that lists them."""
    session_meta: dict[str, Any] = {}
    """`_meta` of the requests that open a session."""
    mcp_file_meta: dict[str, Any] = {}
    """The same where tool servers are passed on: it takes a file that lists them, {file}, and would
    show those in the protocol's parameter, with their secrets, in the arguments of a process."""
    error_prefix: str | None = None
    """It reports a model's error as the last message of a successful turn, with this prefix."""
    usage_adds_up: bool = False
    """It reports the session's usage since the agent's start, not that of the turn."""
    takes_any_model: bool = False
    """It lists no models, and accepts any by `session/set_model`."""
    todo_tool: str | None = None
    """It plans with a tool of this name and reports no plan."""
    reopens_next_minute: bool = False
    """It loses a session that is reopened in the clock's minute of its creation."""
    session_files: str | None = None
    """Where it keeps sessions below the home directory, {session} being the first eight characters
    of the id. It creates another file each time that it reopens one, which stays empty, and at its
    next start deletes a session that has an empty file."""
    tells_history_late: bool = False
    """It answers a load before it has sent the session's history, without marking its end."""
    inner_end: str | None = None
    """It answers a prompt with an error of these words when its inner process has ended."""
    own_turn_end: str | None = None
    """It ends a turn that it began by itself with a state update that has this key in `_meta`."""


class AgentProtocol(StrEnum):
    """The protocol on an agent's standard streams."""

    ACP = "acp"
    CODEX = "codex"


class Preset(BaseModel):
    """One agent of `presets.toml`; the file's head says what each field means."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    protocol: AgentProtocol = AgentProtocol.ACP
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    keys: tuple[str, ...] = ()
    key_prefixes: dict[str, str] = {}
    keys_told: str | None = None
    environment: dict[str, str] = {}
    home_files: dict[str, str] = {}
    model_variable: str | None = None
    model_arguments: tuple[str, ...] = ()
    auth_method: str | None = None
    supports_goal: bool = False
    native_goals: bool = False
    supports_plan: bool = False
    models: dict[str, str] = {}
    default_model: str | None = None
    permission_mode: str | None = None
    plan_mode: str | None = None
    npm: str | None = None
    tested: str | None = None
    install_scripts: bool = False
    install: str | None = None
    logins: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    sessions: tuple[str, ...] | None = None
    saved: tuple[str, ...] = ()
    version_arguments: tuple[str, ...] = ()
    traps: Quirks = Quirks()

    @property
    def chooses_model_at_start(self) -> bool:
        """Whether another model means another process."""
        return bool(self.model_variable or self.model_arguments)

    def program(self, environment: Mapping[str, str]) -> str | None:
        """Return the path of the agent's program on the environment's PATH; None when not installed."""
        name = self.command[0].replace("{python}", sys.executable)
        return shutil.which(name, path=environment.get("PATH", ""))

    @property
    def ships_with_us(self) -> bool:
        """Whether it is part of this package, so that nothing has to be installed."""
        return self.command[0] == "{python}"

    def logged_in(self, environment: Mapping[str, str]) -> bool:
        """Return whether there is a log-in in the environment's home directory."""
        home = environment.get("HOME")
        return bool(home) and any(Path(home, login).is_file() for login in self.logins)

    def configured(self, environment: Mapping[str, str]) -> bool:
        """Return whether the environment's home directory holds a configuration of the agent."""
        home = environment.get("HOME")
        return bool(home) and any(Path(home, name).is_file() for name in self.configurations)

    def arguments(self, model: str | None) -> list[str]:
        """Return the arguments of the program."""
        chosen = [part.replace("{model}", model) for part in self.model_arguments] if model else []
        return [*self.command[1:], *chosen]

    def variables(
        self,
        environment: Mapping[str, str],
        state_directory: str,
        model: str | None,
        key: str | None = None,
    ) -> dict[str, str]:
        """Return the whole environment of the agent's process; what the user set wins over the preset.

        `key` goes into its variable (see `credential`), replacing its value.
        """
        own = {name: _filled(text, state_directory) for name, text in self.environment.items()}
        chosen = {self.model_variable: model} if self.model_variable and model else {}
        credential = dict([self.credential(key)]) if self.keys and key else {}
        return {**own, **environment, **chosen, **credential}

    def credential(self, key: str) -> tuple[str, str]:
        """Return the variable that a stored key goes into, and the key.

        `NAME=KEY` names one of the preset's key variables; otherwise it is that of its kind, or the
        first.
        """
        name, _, named = key.partition("=")
        if named and name in self.keys:
            return name, named
        kinds = (to for prefix, to in self.key_prefixes.items() if key.startswith(prefix))
        return next(kinds, self.keys[0]), key

    @property
    def key_names(self) -> str:
        """The variables that people set for its key, as text; empty when it needs none."""
        return self.keys_told or " or ".join(self.keys)

    def own_key(self, environment: Mapping[str, str]) -> str | None:
        """Return the first key variable that is set and may be passed on.

        Tokens that open more than models, such as a source host's, may not.
        """
        return next((n for n in self.keys if n.endswith("_API_KEY") and environment.get(n)), None)

    def key_found(self, environment: Mapping[str, str]) -> str | None:
        """Return the first key variable that is set."""
        return next((name for name in self.keys if environment.get(name)), None)


def _filled(text: str, state_directory: str) -> str:
    return text.replace("{state_directory}", state_directory).replace(
        "{random}", secrets.token_hex(16)
    )


@cache
def load_presets() -> dict[str, Preset]:
    """Return the presets by agent id, in the order they are shown."""
    text = files("quarterdeck.agents").joinpath("presets.toml").read_text("utf-8")
    return TypeAdapter(dict[str, Preset]).validate_python(tomllib.loads(text))
