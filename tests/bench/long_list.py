"""The list of 500 replicas: the start, and what a change of one costs, and a key, in the sidebar and as a table."""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from uuid import UUID, uuid4

from quarterdeck.store.list_view import Grouping, SortKey
from quarterdeck.tui.screens.main import MainScreen
from tests.bench.cockpit import quiet_cost
from tests.bench.installation import installation
from tests.bench.table import Row
from tests.end_to_end.at_rest import insert
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text

COUNT = 500
SAMPLES = 40


def _fill(app: FrozenCockpit) -> None:
    for number in range(COUNT):
        name = f"repo-{number % 20}"
        status = {"repository": name, "branch": f"qd/one-{number}", "git_diff": {"added": number}}
        app.add(
            f"one-{number}",
            awaiting_input=number % 50 == 0,
            processing=number % 7 == 0,
            repositories=[{"id": UUID(int=3), "name": name, "url": f"https://host/{name}"}],
            repository_statuses=[status],
        )


def _cost(work: Callable[[], object]) -> float:
    """Milliseconds of the processor, the median of several."""
    costs: list[float] = []
    for _ in range(SAMPLES):
        begun = time.process_time()
        work()
        costs.append(time.process_time() - begun)
    return median(costs) * 1000


def _share(app: FrozenCockpit) -> None:
    """Give every other replica to a second service."""
    store = app.add_service("work")
    for id, state in list(app.app_state.replicas.items())[::2]:
        state.service, state.beside = "work", True
        store.replicas[id] = app.app_state.replicas.pop(id)


async def _measure(drafts: Path, *, shared: bool = False) -> list[Row]:
    app = FrozenCockpit(drafts)
    _fill(app)
    if shared:
        _share(app)
    of = f"list of {COUNT} of two services" if shared else f"list of {COUNT}"
    rows: list[Row] = []
    async with app.run_test(size=(120, 40)) as pilot:
        await eventually(lambda: "one-0" in screen_text(app), "the list")
        screen = app.screen
        assert isinstance(screen, MainScreen)
        listing = screen.listing

        def key() -> None:
            listing.action_move(1)
            listing.render_lines(listing.size.region)

        sides = {"sidebar": {}, "table": {"table": True}}
        grouped = {"sort": SortKey.CHANGES, "group": Grouping.REPOSITORY}
        for name, view in {**sides, "table, sorted and grouped": grouped}.items():
            app.services.arrange(**view)
            screen._show_table()
            await pilot.pause()
            rows += [
                Row(f"{of}, {name}: a change", _cost(screen._show_list), "ms", 40),
                Row(f"{of}, {name}: a key", _cost(key), "ms", 8),
            ]
            listing.action_edge(0)
    return rows


def list_rows() -> list[Row]:
    """A start with a service that knows them, then a list that stands still, without a service."""
    with tempfile.TemporaryDirectory() as drafts:
        alone = asyncio.run(_measure(Path(drafts)))
        shared = asyncio.run(_measure(Path(drafts) / "shared", shared=True))
        return [*_start_rows(), *alone, *shared]


def _start_rows() -> list[Row]:
    with installation() as made:
        made.qd("replica", "create", "--name", "one-0", "--wait")
        made.qd("replica", "sleep", "one-0")
        with made.database() as opened:
            _copy_first(opened)
        cpu, sent = zip(*(quiet_cost(made) for _ in range(4)), strict=True)
        return [
            # The first start compiles and has no list of the start before.
            Row(f"list of {COUNT}: CPU until quiet after start", median(cpu[1:]), "s", 0.6),
            Row(f"list of {COUNT}: output at start", max(sent) / 1000, "kB", 12),
        ]


def _copy_first(opened: sqlite3.Connection) -> None:
    """Makes many of the one replica: what is at rest has no process, and here no files."""
    model = opened.execute("SELECT * FROM workspaces WHERE name = 'one-0'").fetchone()
    (chat,) = opened.execute("SELECT * FROM chats WHERE workspace_id = ?", (model["id"],))
    replicas: list[dict[str, object]] = []
    chats: list[dict[str, object]] = []
    for number in range(1, COUNT):
        own = {"id": str(uuid4()), "name": f"one-{number}", "engine_secret_sealed": ""}
        replicas.append({**dict(model), **own})
        chats.append({**dict(chat), "id": str(uuid4()), "workspace_id": own["id"]})
    for table, rows in (("workspaces", replicas), ("chats", chats)):
        insert(opened, table, rows)
