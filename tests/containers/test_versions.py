"""Engines of versions that the service does not work with."""

from pathlib import Path

import pytest

from quarterdeck import __version__
from quarterdeck.cli.doctor import failed_replicas
from quarterdeck.cli.target import Target
from quarterdeck.sandboxes.saves import Saves
from quarterdeck.wire import engine_versions
from quarterdeck.wire.engine_versions import is_supported
from tests.containers.deck import Deck
from tests.containers.losses import block, ended, until_saved, wake
from tests.containers.processes import ProcessContainers
from tests.support.git import make_repository


def test_versions_from_the_oldest_to_the_own_release_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_supported(__version__)
    monkeypatch.setattr(engine_versions, "__version__", "1.4.2")
    monkeypatch.setattr(engine_versions, "OLDEST", (1, 2, 1))
    for version in ("1.2.1", "1.3.0", "1.4.0rc1", "1.4.9", "1.4.2.dev3"):
        assert is_supported(version), version
    for version in ("1.2.0", "0.9.9", "1.5.0", "2.0.0", "1.4", "", "unknown", "1.x.0", "1.4.x"):
        assert not is_supported(version), version


@pytest.mark.long
async def test_an_engine_that_is_too_old_is_saved_and_ended(
    deck: Deck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that was updated says so of the replica; waking it starts another engine."""
    id = await deck.create(await deck.environment(str(make_repository(tmp_path / "shop"))))
    await deck.post(f"/v1/replica/{id}/messages", block("echo turn > turn"))
    await ended(deck, id, 1)
    await deck.stop()
    containers = deck.containers
    assert isinstance(containers, ProcessContainers)
    (containers.place(id) / "workspace/shop/later").write_text("later\n")
    monkeypatch.setattr(engine_versions, "OLDEST", (9, 0, 0))
    await deck.start()
    error = (await deck.reach(id, "error"))["error"]
    assert f"is of version {__version__}" in error and "works with 9.0.0 to" in error
    assert "could not be saved" not in error
    await until_saved(deck, id, "later", "later\n")
    assert len(containers.launches) == 1
    target = Target("local", None, deck.home.socket, None, deck.home, embedded=True)
    (found,) = [one async for one in failed_replicas(target)]
    assert f"r1: The replica's engine is of version {__version__}" in found.message
    monkeypatch.undo()
    await wake(deck, id)
    assert [one async for one in failed_replicas(target)] == []
    assert await deck.run(id, "cat shop/turn shop/later") == "turn\nlater\n"
    assert len(containers.launches) == 2


async def test_an_engine_that_is_too_old_is_ended_when_saving_fails_unexpectedly(
    deck: Deck, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await deck.create(await deck.environment())
    await deck.stop()

    async def fail(*_: object) -> list[str]:
        raise OSError("too many open files")

    monkeypatch.setattr(Saves, "known", fail)
    monkeypatch.setattr(engine_versions, "OLDEST", (9, 0, 0))
    await deck.start()
    assert "see its log" in (await deck.reach(id, "error"))["error"]
    containers = deck.containers
    assert isinstance(containers, ProcessContainers) and containers.processes == {}
