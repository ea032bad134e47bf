"""Why an agent cannot be used, and what to do about it."""

from quarterdeck.agents.presets import Preset


def install_command(agent_id: str, preset: Preset) -> str | None:
    """What a person runs to install an agent."""
    return f"qd agents install {agent_id}" if preset.npm else preset.install


def not_installed(preset: Preset, command: str | None = None) -> str:
    """Why an agent without a program cannot be used, and what to do."""
    ways = [way for way in dict.fromkeys((command, preset.install)) if way]
    hint = f" Install it with: {', or '.join(ways)}." if ways else ""
    return f"Not installed: {preset.command[0]} is not on the PATH.{hint}"


def no_key(preset: Preset, agent_id: str | None = None) -> str:
    """Why an agent without a key cannot be used, and what to do; the id where one can be stored."""
    named = f"No key: set the variable {preset.key_names}"
    if agent_id is None:
        return f"{named}."
    return f"{named} in an environment, or run: qd credentials set {agent_id}."
