"""Environments with hooks that wait for a file, and pools, in an installation that tests kill."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.support.installation import Follower, Installation, command_of, of_engine
from tests.support.waiting import WAIT_SECONDS, until


def waiting_hook(kind: str) -> str:
    """Notes that it ran, then waits for `let_go`."""
    return f"echo {kind} >> ~/ran; until [ -e ~/go-{kind} ]; do sleep 0.02; done"


START = "echo start >> ~/ran; while [ -e ~/stay ]; do sleep 0.02; done"
"""A start hook that waits only in a workspace that was told to `stay`."""


@dataclass
class Shaped:
    """One environment of an installation, with its hooks and its pool."""

    deck: Installation
    environment: str

    @classmethod
    def make(cls, deck: Installation, repository: str | None = None, **hooks: str) -> "Shaped":
        """An environment with hooks by their kind."""
        body = {"name": f"shaped {uuid4()}", "repository_id": repository}
        made = deck.post("/v1/environments", body, 201)["environment"]["id"]
        shaped = cls(deck, made)
        for kind, content in hooks.items():
            shaped.save(kind, content)
        return shaped

    def save(self, kind: str, content: str) -> None:
        path = f"/v1/environments/{self.environment}/{kind}-hooks/save"
        self.deck.post(path, {"content": content})

    # Its pool

    def switch(self, enabled: bool) -> None:
        path = f"/v1/environments/{self.environment}/warm-pools"
        answer = self.deck.ask("PUT", path, {"enabled": enabled})
        assert answer.status_code == 200, answer.text

    def pool(self) -> dict[str, Any] | None:
        return self.deck.get(f"/v1/environments/{self.environment}/warm-hooks")["warm_pool"]

    def pooled(self) -> list[str]:
        """The workspaces of the pool, oldest first."""
        if (pool := self.pool()) is None:
            return []
        held = self.deck.get(f"/v1/warm-pools/{pool['id']}/workspaces")["workspaces"]
        return [one["id"] for one in held]

    def filled(self) -> list[str]:
        """Waits until the pool has what it should have, and nothing else; the next one first."""

        def full() -> list[str]:
            pool, held = self.pool(), self.pooled()
            return held if pool and pool["ready_count"] == pool["target_size"] == len(held) else []

        return until(full, "a full pool")

    def empty(self) -> None:
        """Switches the pool off and waits until nothing is left of it."""
        held = self.pooled()
        self.switch(False)
        until_gone(self.deck, *held)


def home_of(deck: Installation, id: str) -> Path:
    return deck.place(id) / "home"


def ran(deck: Installation, id: str) -> list[str]:
    """The hooks that ran in a workspace, in their order, as they noted themselves."""
    path = home_of(deck, id) / "ran"
    return path.read_text().split() if path.exists() else []


def until_ran(deck: Installation, id: str, *hooks: str) -> None:
    until(lambda: ran(deck, id) == list(hooks), f"the hooks {hooks}")


def let_go(deck: Installation, id: str, kind: str) -> None:
    (home_of(deck, id) / f"go-{kind}").touch()


def hooks_running(deck: Installation, id: str) -> int:
    """How many processes run a hook's script."""
    return sum("/hooks/" in command_of(pid) for pid in deck.processes(id))


class Background:
    """A request that is made while something is killed; `answer` is None when it got none."""

    def __init__(self, deck: Installation, path: str, body: Any) -> None:
        self.answer: httpx.Response | None = None
        self._thread = threading.Thread(target=self._ask, args=(deck, path, body))
        self._thread.start()

    def _ask(self, deck: Installation, path: str, body: Any) -> None:
        try:
            self.answer = deck.ask("POST", path, body)
        except (httpx.HTTPError, OSError):
            return

    def end(self) -> httpx.Response | None:
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive()
        return self.answer


def on_disk(deck: Installation) -> set[str]:
    return {path.name for path in deck.home.workspaces.glob("[!.]*")}


def until_gone(deck: Installation, *ids: str) -> None:
    """Waits for the removal of workspaces, which moves their files aside first."""
    places = deck.home.workspaces
    until(lambda: not any(list(places.glob(f"*{id}*")) for id in ids), f"the removal of {ids}")
    deck.check_gone(*ids)


def eventually(deck: Installation, wanted: Callable[[], set[str]]) -> None:
    """Waits until just these workspaces are on the disk."""
    until(lambda: on_disk(deck) == wanted(), "only workspaces that somebody knows")


def check_whole(deck: Installation, id: str, follower: Follower) -> None:
    """The stream brought every event once, in order, and all that the engine wrote down."""
    newest = deck.replica(id)["log_index"]
    until(lambda: follower.indices and follower.indices[-1] >= newest, "the newest event")
    follower.end()
    assert follower.indices == list(range(1, len(follower.events) + 1))
    told = [event for _, event in follower.events if of_engine(event)]
    relayed = [(event["ts"], event["type"]) for event in told]
    written = [(entry["ts"], entry["type"]) for entry in deck.journal(id)]
    assert relayed == written[: len(relayed)]
    assert [
        type for _, type in written[len(relayed) :] if type.startswith(("chat.", "hooks."))
    ] == []
