"""Which agents there are and which can be used."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.agents.catalog import default_catalog, own_keys, programs_of
from quarterdeck.agents.port import AgentStatus, AgentUnavailableError
from quarterdeck.agents.presets import load_presets
from quarterdeck.wire.agents import RELEASED, OwnAgent

ROBOT = {"robot": OwnAgent(name="Robot", command=("robot", "--acp"), keys=("ROBOT_KEY",))}


@pytest.fixture
def empty_path(tmp_path) -> dict[str, str]:
    return {"PATH": str(tmp_path)}


def install(directory: str, name: str, script: str = "") -> Path:
    program = Path(directory, name)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def statuses(environment: dict[str, str], **more: Any) -> dict[str, AgentStatus]:
    return {one.id: one for one in default_catalog(environment, **more).statuses()}


def test_all_six_are_known_and_builtin_is_always_there(empty_path) -> None:
    found = statuses(empty_path)
    assert list(found) == ["codex", "claude", "opencode", "copilot", "gemini", "builtin"]
    assert set(found) == RELEASED
    assert [s.id for s in found.values() if s.available] == ["builtin"]
    assert found["builtin"].supports_plan
    assert found["builtin"].install is None
    assert found["codex"].supports_goal
    assert "Not installed" in (found["claude"].reason or "")
    assert "npm install" in (found["claude"].reason or "")
    assert found["claude"].install == "qd agents install claude"
    assert not found["claude"].installed


def test_an_installed_agent_wants_its_key(empty_path) -> None:
    install(empty_path["PATH"], "gemini")
    gemini = {s.id: s for s in default_catalog(empty_path).statuses()}["gemini"]
    assert not gemini.available
    assert gemini.reason == "No key: set the variable GEMINI_API_KEY."
    keyed = {**empty_path, "GEMINI_API_KEY": "k"}
    gemini = {s.id: s for s in default_catalog(keyed).statuses()}["gemini"]
    assert gemini.available
    assert gemini.auth_method == "api_key"


def test_codex_is_driven_and_works_towards_goals_by_itself(empty_path) -> None:
    install(empty_path["PATH"], "codex")
    catalog = default_catalog({**empty_path, "OPENAI_API_KEY": "k"})
    codex = catalog.statuses()[0]
    assert codex.available and codex.supports_goal
    assert catalog.driver("codex") is not None
    assert catalog.native_goals("codex") and not catalog.native_goals("claude")


def test_an_unknown_agent_is_refused_with_the_known_ones(empty_path) -> None:
    with pytest.raises(AgentUnavailableError, match=r"no agent 'hal'.*builtin"):
        default_catalog(empty_path).driver("hal")


def test_statuses_start_no_program_where_none_is_installed(empty_path, monkeypatch) -> None:
    catalog = default_catalog(empty_path)

    def refuse(*_args: object, **_more: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    assert catalog.statuses()


def test_keys_are_never_arguments_and_the_user_wins_over_the_preset() -> None:
    for preset in load_presets().values():
        assert not any("KEY" in part for part in preset.arguments("model"))
    preset = load_presets()["claude"]
    variables = preset.variables({"DISABLE_TELEMETRY": "0"}, "/state", "opus")
    assert variables["DISABLE_TELEMETRY"] == "0"
    assert variables["ANTHROPIC_MODEL"] == "opus"
    builtin = load_presets()["builtin"].variables({}, "/state", None)
    assert builtin == {"QUARTERDECK_AGENT_STATE": "/state"}


def test_the_host_counts_no_key_and_no_login_of_its_own(empty_path, tmp_path) -> None:
    """Replicas see neither; an agent's key variable is handed to the owner's."""
    install(empty_path["PATH"], "gemini")
    login = tmp_path / ".gemini" / "oauth_creds.json"
    login.parent.mkdir()
    login.write_text("{}")
    here = {**empty_path, "HOME": str(tmp_path), "GEMINI_API_KEY": "k"}
    gemini = statuses(here, host=True)["gemini"]
    assert not gemini.available
    assert gemini.auth_method is None
    assert gemini.missing_keys == ("GEMINI_API_KEY",)
    assert gemini.own_key == "GEMINI_API_KEY"
    assert gemini.login_found
    assert "qd credentials set gemini" in (gemini.reason or "")
    assert "is not shown to replicas" in (gemini.reason or "")
    # OpenCode takes keys of several providers.
    assert own_keys(here) == {"gemini": "GEMINI_API_KEY=k", "opencode": "GEMINI_API_KEY=k"}


def test_a_token_that_opens_more_than_models_is_not_handed_on() -> None:
    assert own_keys({"GH_TOKEN": "t", "GITHUB_TOKEN": "t"}) == {}
    assert own_keys({"COPILOT_PROVIDER_API_KEY": "k"}) == {"copilot": "COPILOT_PROVIDER_API_KEY=k"}


@pytest.mark.parametrize(
    ("stored", "variable", "key"),
    [
        ("sk-x", "ANTHROPIC_API_KEY", "sk-x"),
        ("OPENAI_API_KEY=sk-x", "OPENAI_API_KEY", "sk-x"),
        ("OTHER_KEY=sk-x", "ANTHROPIC_API_KEY", "OTHER_KEY=sk-x"),
        ("OPENAI_API_KEY=", "ANTHROPIC_API_KEY", "OPENAI_API_KEY="),
        ("sk-x=", "ANTHROPIC_API_KEY", "sk-x="),
    ],
)
def test_a_stored_key_may_name_its_variable(stored: str, variable: str, key: str) -> None:
    preset = load_presets()["opencode"]
    assert preset.variables({"ANTHROPIC_API_KEY": "old"}, "/s", None, stored)[variable] == key


@pytest.mark.parametrize(
    ("stored", "variable"),
    [
        ("github_pat_x", "COPILOT_GITHUB_TOKEN"),
        ("gho_x", "COPILOT_GITHUB_TOKEN"),
        ("ghu_x", "COPILOT_GITHUB_TOKEN"),
        ("ghs_x", "COPILOT_GITHUB_TOKEN"),
        ("ghp_x", "COPILOT_GITHUB_TOKEN"),
        ("sk-x", "COPILOT_PROVIDER_API_KEY"),
        ("COPILOT_PROVIDER_API_KEY=ghp_x", "COPILOT_PROVIDER_API_KEY"),
        ("GH_TOKEN=ghp_x", "GH_TOKEN"),
    ],
)
def test_a_stored_key_goes_where_its_kind_is_taken(stored: str, variable: str) -> None:
    variables = load_presets()["copilot"].variables({}, "/s", None, stored)
    assert variables[variable] == stored.rpartition("=")[2]
    assert [name for name in load_presets()["copilot"].keys if name in variables] == [variable]


def test_a_provider_of_ones_own_is_named_with_its_address(empty_path) -> None:
    install(empty_path["PATH"], "copilot")
    assert statuses(empty_path)["copilot"].reason == (
        "No key: set the variable COPILOT_GITHUB_TOKEN, or COPILOT_PROVIDER_API_KEY with"
        " COPILOT_PROVIDER_BASE_URL for a provider of your own."
    )


def test_a_configuration_that_may_name_a_provider_is_as_good_as_a_key(empty_path, tmp_path) -> None:
    install(empty_path["PATH"], "codex")
    here = {**empty_path, "HOME": str(tmp_path)}
    assert not statuses(here)["codex"].available
    configuration = tmp_path / ".codex" / "config.toml"
    configuration.parent.mkdir()
    configuration.write_text("")
    assert statuses(here)["codex"].available
    on_the_host = statuses(here, host=True)["codex"]
    assert not on_the_host.available and not on_the_host.login_found
    assert "not shown to replicas" not in (on_the_host.reason or "")
    assert on_the_host.logins == (".codex/auth.json", ".codex/config.toml")


def test_inside_a_login_is_as_good_as_a_key(empty_path, tmp_path) -> None:
    install(empty_path["PATH"], "gemini")
    inside = {**empty_path, "HOME": str(tmp_path)}
    assert not statuses(inside)["gemini"].available
    assert statuses(inside, keyed=["gemini"])["gemini"].auth_method == "api_key"
    login = tmp_path / ".gemini" / "oauth_creds.json"
    login.parent.mkdir()
    login.write_text("{}")
    gemini = statuses(inside)["gemini"]
    assert gemini.available
    assert gemini.auth_method == "login"


def test_a_persons_own_agent_is_one_of_them(empty_path) -> None:
    found = statuses(empty_path, own=ROBOT)
    assert list(found)[-2:] == ["robot", "builtin"]
    assert found["robot"].reason == "Not installed: robot is not on the PATH."
    install(empty_path["PATH"], "robot")
    keyed = {**empty_path, "ROBOT_KEY": "k"}
    assert statuses(keyed, own=ROBOT)["robot"].available
    assert default_catalog(empty_path, ROBOT).driver("robot")
    assert "robot" in programs_of(ROBOT)
    with pytest.raises(AgentUnavailableError, match="no agent 'robot'"):
        default_catalog(empty_path).driver("robot")


def test_the_version_is_told_with_the_status(empty_path) -> None:
    install(empty_path["PATH"], "gemini", "echo gemini-cli v0.61.0 for nobody")
    assert statuses(empty_path)["gemini"].version == "0.61.0"
