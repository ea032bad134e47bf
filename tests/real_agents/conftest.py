"""Which agents are run: those that the suite brings along, and others only when asked for."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Agents that only some have installed are left out unless they are asked for."""
    if "more_agents" in (config.option.markexpr or ""):
        return
    left = {item for item in items if item.get_closest_marker("more_agents")}
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]
