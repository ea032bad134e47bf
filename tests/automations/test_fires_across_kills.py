"""Many fires while the services over one database are killed and started again in turn."""

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import Engine, func, select, text

from quarterdeck.local.home import Home
from quarterdeck.service.automations.rows import add_automation
from quarterdeck.service.automations.scheduler import next_fire
from quarterdeck.service.db.database import Database, sqlite_url, writing_engine
from quarterdeck.service.db.tables import automation_executions, automations, events, workspaces
from quarterdeck.service.first_start import ensure_installation
from quarterdeck.service.formats import moment_text
from quarterdeck.service.start import take_home
from quarterdeck.service.vault import Vault
from tests.conftest import DATABASES
from tests.support.forked import ForkedPopen
from tests.support.waiting import until

BEGIN = datetime(2026, 10, 25, 0, 49, tzinfo=UTC)
"""Eleven minutes before the clocks of Europe go back."""
MINUTES = 13
RHYTHMS = [
    *[("* * * * *", "UTC")] * 3,
    ("*/2 * * * *", "Europe/Berlin"),
    ("50 1,2 * * *", "Europe/Berlin"),
]
KILL_EVERY = 3


@dataclass
class Service:
    """One service of several; `start` again after `kill`."""

    home: Path
    clock: Path
    database_url: str
    process: subprocess.Popen[Any] | None = None

    def start(self) -> None:
        words = [sys.executable, "-P", "-m", "tests.automations.clocked"]
        words += [str(self.home), str(self.clock), self.database_url]
        self.process = ForkedPopen(words, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None


@dataclass
class Place:
    """Where it happens: the clock and the database, looked at from outside."""

    clock: Path
    engine: Engine
    now: datetime = BEGIN
    services: list[Service] = field(default_factory=list[Service])

    def turn_to(self, now: datetime) -> None:
        self.now = now
        draft = self.clock.with_suffix(".new")
        draft.write_text(now.isoformat())
        draft.replace(self.clock)

    def ask(self, statement: Any) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(statement))

    def idle(self) -> bool:
        """Nothing is due any more, and nothing waits to be started."""
        due = automations.c.cron_next_fire_at <= moment_text(self.now)
        waits = automation_executions.c.status == "pending"
        return not self.ask(select(automations.c.id).where(due)) and not self.ask(
            select(automation_executions.c.id).where(waits)
        )

    def fired(self, minute: int) -> bool:
        """Whether the fire of a minute has made its run."""
        fire = moment_text(BEGIN + timedelta(minutes=minute))
        key = automation_executions.c.fire_key.endswith(fire)
        return bool(self.ask(select(automation_executions.c.id).where(key)))


async def _prepare(home: Home, url: str) -> None:
    lock = take_home(home)
    database = await Database.open(url)
    try:
        await Vault.open(home.master_key)
        await ensure_installation(database, home)
        rows = await database.read(
            lambda c: list(c.execute(text("SELECT id, organization_id FROM environments")))
        )
        environment, organization = rows[0]
        for number, (schedule, zone) in enumerate(RHYTHMS):
            following = next_fire(schedule, zone, BEGIN)
            assert following is not None
            values = {
                "id": f"00000000-0000-4000-8000-{number:012}",
                "organization_id": organization,
                "environment_id": environment,
                "name": f"a{number}",
                "triggers_json": "[]",
                "trigger_types": " cron ",
                "prompt": "Go.",
                "enabled": True,
                "cron_expression": schedule,
                "cron_timezone": zone,
                "cron_next_fire_at": moment_text(following),
                "workspace_lifecycle_policy": "default",
                "config_json": "{}",
                "plan_mode": False,
                "created_at": moment_text(BEGIN),
                "updated_at": moment_text(BEGIN),
            }
            await database.write(lambda c, values=values: add_automation(c, values))
    finally:
        await database.close()
        lock.release()


@contextmanager
def _running(services: list[Service]) -> Iterator[None]:
    try:
        for one in services:
            one.start()
        yield
    finally:
        for one in services:
            if one.process is not None:
                one.kill()


def _expected() -> Counter[tuple[str, str]]:
    due: Counter[tuple[str, str]] = Counter()
    for number, (schedule, zone) in enumerate(RHYTHMS):
        moment = next_fire(schedule, zone, BEGIN)
        while moment is not None and moment <= BEGIN + timedelta(minutes=MINUTES):
            due[f"a{number}", moment_text(moment)] += 1
            moment = next_fire(schedule, zone, moment)
    return due


def _check(place: Place) -> None:
    runs = place.ask(
        select(
            automations.c.name,
            automation_executions.c.fire_key,
            automation_executions.c.workspace_id,
        ).join(automations, automations.c.id == automation_executions.c.automation_id)
    )
    assert Counter((name, fire.rsplit(" ", 1)[1]) for name, fire, _ in runs) == _expected()
    assert sum(_expected().values()) > 40
    made = {workspace for _, _, workspace in runs}
    assert None not in made and len(made) == len(runs)
    kept = {id for (id,) in place.ask(select(workspaces.c.id))}
    assert kept == made
    told = place.ask(select(func.count()).select_from(events))[0][0]
    assert told >= len(made)


def _day(place: Place, chance: random.Random) -> None:
    """Some minutes of the clock, one at a time; now and then somebody is killed in the middle."""
    for minute in range(1, MINUTES + 1):
        place.turn_to(BEGIN + timedelta(minutes=minute))
        if minute % KILL_EVERY == 0:
            victim = place.services[minute // KILL_EVERY % len(place.services)]
            if chance.random() < 0.5:  # else before it has seen the time
                until(partial(place.fired, minute), "the first fire")
            victim.kill()
            victim.start()
        until(place.idle, f"minute {minute}")


@pytest.fixture(params=DATABASES)
def database_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.long
async def test_no_fire_is_lost_or_doubled(database_kind: str, database_url: str) -> None:
    with TemporaryDirectory(prefix="qd-") as directory:
        root = Path(directory)
        one_home = database_kind == "sqlite"  # a file has one service at a time
        homes = [Home(root / name) for name in ("a" if one_home else "ab")]
        url = sqlite_url(homes[0].database) if one_home else database_url
        await _prepare(homes[0], url)
        for other in homes[1:]:
            other.service.mkdir(parents=True)
            shutil.copy(homes[0].master_key, other.master_key)
        place = Place(root / "clock", writing_engine(url))
        place.turn_to(BEGIN)
        given = "" if one_home else url
        place.services = [Service(home.root, place.clock, given) for home in homes]
        with _running(place.services):
            _day(place, random.Random(os.environ.get("PYTEST_RANDOMLY_SEED", "7")))
        _check(place)
        place.engine.dispose()
