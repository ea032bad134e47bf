"""Which agents there are and which can be used."""

import time
from pathlib import Path

import pytest

from quarterdeck.agents.catalog import default_catalog
from quarterdeck.agents.port import AgentUnavailableError
from quarterdeck.agents.presets import load_presets


@pytest.fixture
def empty_path(tmp_path) -> dict[str, str]:
    return {"PATH": str(tmp_path)}


def install(directory: str, name: str) -> None:
    program = Path(directory, name)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)


def test_all_six_are_known_and_builtin_is_always_there(empty_path) -> None:
    statuses = {s.id: s for s in default_catalog(empty_path).statuses()}
    assert list(statuses) == ["codex", "claude", "opencode", "copilot", "gemini", "builtin"]
    assert [s.id for s in statuses.values() if s.available] == ["builtin"]
    assert statuses["builtin"].supports_plan
    assert statuses["codex"].supports_goal
    assert "Not installed" in statuses["claude"].reason
    assert "npm install" in statuses["claude"].reason


def test_an_installed_agent_wants_its_key(empty_path) -> None:
    install(empty_path["PATH"], "gemini")
    gemini = {s.id: s for s in default_catalog(empty_path).statuses()}["gemini"]
    assert not gemini.available
    assert gemini.reason == "No key: set the variable GEMINI_API_KEY."
    keyed = {**empty_path, "GEMINI_API_KEY": "k"}
    gemini = {s.id: s for s in default_catalog(keyed).statuses()}["gemini"]
    assert gemini.available
    assert gemini.auth_method == "api_key"


def test_codex_is_unavailable_with_an_honest_reason_even_when_installed(empty_path) -> None:
    install(empty_path["PATH"], "codex")
    catalog = default_catalog({**empty_path, "OPENAI_API_KEY": "k"})
    codex = catalog.statuses()[0]
    assert not codex.available
    assert "cannot drive yet" in codex.reason
    with pytest.raises(AgentUnavailableError, match="cannot drive yet"):
        catalog.driver("codex")


def test_an_unknown_agent_is_refused_with_the_known_ones(empty_path) -> None:
    with pytest.raises(AgentUnavailableError, match=r"no agent 'hal'.*builtin"):
        default_catalog(empty_path).driver("hal")


def test_statuses_are_quick(empty_path) -> None:
    catalog = default_catalog(empty_path)
    catalog.statuses()
    started = time.perf_counter()
    for _ in range(10):
        catalog.statuses()
    assert (time.perf_counter() - started) / 10 < 0.02


def test_keys_are_never_arguments_and_the_user_wins_over_the_preset() -> None:
    for preset in load_presets().values():
        assert not any("KEY" in part for part in preset.arguments("model"))
    preset = load_presets()["claude"]
    variables = preset.variables({"DISABLE_TELEMETRY": "0"}, "/state", "opus")
    assert variables["DISABLE_TELEMETRY"] == "0"
    assert variables["ANTHROPIC_MODEL"] == "opus"
    builtin = load_presets()["builtin"].variables({}, "/state", None)
    assert builtin == {"QUARTERDECK_AGENT_STATE": "/state"}
