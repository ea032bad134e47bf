"""A kill storm: services, engines, agents and lines end at random while messages run.

Every accepted message begins and ends once, and none runs twice, accepted or not. `make storm`, with
the number of kills and a seed in ARGS: `python -m tests.security.storm [KILLS] [SEED]`.
"""

import os
import random
import signal
import sys
import threading
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import monotonic, sleep

import httpx

from tests.support.cut_line import CutLine
from tests.support.git import make_repository
from tests.support.installation import Follower, Installation, block, runs
from tests.support.waiting import until
from tests.system.conftest import installed

VICTIMS = {"service": 2, "engine": 3, "agent": 6, "line": 9}
"""And how often each is chosen: a service takes longest to start."""
REPLICAS = 2
PAUSE = 0.2
"""Longest pause between two kills; a replica gets a message about as often."""
FLIGHT = 0.03
"""Longest time from the start of a message to the kill that it may not survive."""


@dataclass
class Sender:
    """Sends numbered messages to one replica until it is stopped; each writes its number down."""

    deck: Installation
    id: str
    by: random.Random
    accepted: dict[str, int] = field(default_factory=dict[str, int])
    """Numbers of messages by their ids."""
    hurry: threading.Event = field(default_factory=threading.Event)
    """Set when the next message is to be sent at once."""
    stopped: threading.Event = field(default_factory=threading.Event)
    failed: list[Exception] = field(default_factory=list[Exception])

    def run(self) -> None:
        try:
            number = 0
            while not self.stopped.is_set():
                self.hurry.wait(self.by.uniform(0, 4 * PAUSE))
                self.hurry.clear()
                number += 1
                with suppress(httpx.HTTPError, OSError):  # it may have been accepted or not
                    self._send(number)
        except (AssertionError, ValueError, KeyError) as error:
            self.failed.append(error)

    def _send(self, number: int) -> None:
        pause = self.by.choice((0, 0, 0.05, 0.3))
        script = f"echo {number} >> /workspace/said; sleep {pause}"
        answer = self.deck.ask(
            "POST", f"/v1/replica/{self.id}/messages", {"message": block(script)}
        )
        if answer.status_code == 409 and answer.json()["code"] == "WORKSPACE_ERROR_STATE":
            self.deck.ask("POST", f"/v1/workspaces/{self.id}/wake")  # too many ends in a minute
            return
        # A service that has lost an engine or is short of time says so, and then nothing is accepted.
        assert answer.status_code in (200, 503), answer.text
        if answer.status_code == 200:
            self.accepted[answer.json()["message_id"]] = number


class Storm:
    """`deck` is the installation, `line` the way by which messages and events go."""

    def __init__(self, deck: Installation, line: CutLine, seed: int) -> None:
        self.by = random.Random(seed)
        self.deck = deck
        self.line = line
        self.killed: Counter[str] = Counter()
        through = replace(deck, port=line.port)
        environment = deck.environment_with(deck.connect(str(make_repository(deck.base / "shop"))))
        ids = [deck.create(environment) for _ in range(REPLICAS)]
        self.senders = [Sender(through, id, random.Random(f"{seed} {id}")) for id in ids]
        self.followers = [Follower(through, id) for id in ids]

    def rage(self, kills: int) -> None:
        threads = [threading.Thread(target=sender.run) for sender in self.senders]
        for thread in threads:
            thread.start()
        try:
            while self.killed.total() < kills:
                sleep(self.by.uniform(0, PAUSE))
                (victim,) = self.by.choices(list(VICTIMS), list(VICTIMS.values()))
                self.by.choice(self.senders).hurry.set()  # so that something is under way
                sleep(self.by.uniform(0, FLIGHT))
                getattr(self, f"_kill_{victim}")()
        finally:
            for sender in self.senders:
                sender.stopped.set()
            for thread in threads:
                thread.join()

    def _kill_service(self) -> None:
        self.deck.kill()
        self.killed["service"] += 1
        if self.by.random() < 0.3:
            self._kill_engine()
        self.deck.start()

    def _kill_engine(self) -> None:
        with suppress(OSError, ValueError, KeyError, TypeError):  # none is recorded at the moment
            self._end("engine", [self.deck.engine(self.by.choice(self.senders).id)])

    def _kill_agent(self) -> None:
        self._end("agent", self.deck.agents(self.by.choice(self.senders).id))

    def _end(self, what: str, pids: list[int]) -> None:
        living = [pid for pid in pids if runs(pid)]
        if living:
            with suppress(ProcessLookupError):
                os.kill(self.by.choice(living), signal.SIGKILL)
                self.killed[what] += 1

    def _kill_line(self) -> None:
        self.line.cut()
        sleep(self.by.uniform(0, PAUSE))
        self.line.mend()
        self.killed["line"] += 1

    def check(self) -> int:
        """Check every message, once all have ended, and return how many were accepted."""
        accepted = 0
        for sender, follower in zip(self.senders, self.followers, strict=True):
            assert not sender.failed, sender.failed
            assert sender.accepted, "no message was accepted"
            accepted += len(sender.accepted)
            self._wait_for_all(sender, follower)
            self._check(sender, follower)
        return accepted

    def _wait_for_all(self, sender: Sender, follower: Follower) -> None:
        def ended() -> bool:
            if self.deck.replica(sender.id)["status"] == "error":
                self.deck.ask("POST", f"/v1/workspaces/{sender.id}/wake")
            return not set(sender.accepted) - set(times(follower, "chat.turn.completed"))

        until(ended, "the end of every accepted message", 120)
        newest = self.deck.replica(sender.id)["log_index"]
        until(lambda: follower.indices[-1] >= newest, "the newest event")
        follower.end()

    def _check(self, sender: Sender, follower: Follower) -> None:
        assert follower.indices == list(range(1, len(follower.events) + 1)), "events are missing"
        begun, done = times(follower, "chat.turn.started"), times(follower, "chat.turn.completed")
        wrong = {
            id: (begun[id], done[id]) for id in begun | done if (begun[id], done[id]) != (1, 1)
        }
        assert not wrong, f"beginnings and ends of messages: {wrong}"
        assert sender.accepted.keys() <= begun.keys()
        lines = (self.deck.place(sender.id) / "files" / "said").read_text().split()
        said = [int(line) for line in lines]
        assert all(a < b for a, b in pairwise(said)), f"twice, or late: {said}"
        whole = {
            event["payload"]["messageId"]
            for _, event in follower.events
            if event["type"] == "chat.turn.completed" and event["payload"]["isComplete"]
        }
        lost = [n for id, n in sender.accepted.items() if id in whole and n not in said]
        assert not lost, f"complete, but they did not run: {lost}"


def times(follower: Follower, type: str) -> Counter[str]:
    """How often each message has an event of a type."""
    return Counter(e["payload"]["messageId"] for _, e in list(follower.events) if e["type"] == type)


def storm(kills: int, seed: int) -> str:
    """Let it rage, check what it has left, and say what happened."""
    with ExitStack() as stack:
        deck = stack.enter_context(installed())
        deck.start()
        line = stack.enter_context(CutLine(deck.home.socket).running())
        begun = monotonic()
        try:
            raging = Storm(deck, line, seed)
            raging.rage(kills)
            accepted = raging.check()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        counts = ", ".join(f"{count} {what}" for what, count in raging.killed.most_common())
        seconds = monotonic() - begun
        return (
            f"{accepted} messages through {kills} kills ({counts}) in {seconds:.0f} s; seed {seed}"
        )


def main(arguments: list[str]) -> None:
    kills, seed = (*map(int, arguments), *(1_000, random.randrange(1 << 30))[len(arguments) :])
    print(storm(kills, seed))


if __name__ == "__main__":
    main(sys.argv[1:])
