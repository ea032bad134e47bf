"""Searching eighty thousand files: the first page, and what `fzf --filter` takes for the same list."""

import asyncio
import resource
import shutil
import statistics
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import httpx
from fastapi import FastAPI
from sqlalchemy import insert

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.service.app import build_app
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.db.tables import environments, workspaces
from quarterdeck.service.formats import moment_text, now_text
from quarterdeck.service.identity.rows import only_organization
from quarterdeck.service.replicas.file_indexes import IndexOrigin, SavedIndex, pack, save_index
from quarterdeck.service.start import build_service, open_service
from quarterdeck.wire.base import utc_now
from tests.bench.table import Row
from tests.service.big_tree import big_tree

COUNT = 80_000
RUNS = 15
QUERIES = ("", "main", "e", "srv queue", "sessiontoken", "canvaspreview.py", "app/panel")


def file_rows() -> list[Row]:
    """The first page of each query over a sleeping workspace's index, through the whole service."""
    paths = big_tree(COUNT)
    taken = asyncio.run(_measure(paths))
    rows: list[Row] = []
    for query, (cpu, wall) in taken.items():
        name = f"files: first page of {query!r}"
        rows.append(Row(f"{name}, processor", cpu * 1000, "ms", 50, f"{COUNT} paths"))
        peer = _fzf(paths, query)
        note = "fzf is not installed" if peer is None else f"fzf --filter {peer * 1000:.0f} ms"
        rows.append(Row(f"{name}, elapsed", wall * 1000, "ms", peer and peer * 3000, note))
    return rows


async def _measure(paths: list[str]) -> dict[str, tuple[float, float]]:
    async with _service(paths) as (app, client, url):
        await client.get(url)  # makes the index ready, as a refresh does
        found: dict[str, tuple[float, float]] = {}
        for query in QUERIES:
            runs = [await _first_page(app, client, url, query) for _ in range(RUNS)]
            cpu, wall = zip(*runs, strict=True)
            found[query] = statistics.median(cpu), statistics.median(wall)
        return found


async def _first_page(
    app: FastAPI, client: httpx.AsyncClient, url: str, query: str
) -> tuple[float, float]:
    app.state.service.file_search.forget_results()
    begun, cpu = time.perf_counter(), _processor()
    answer = await client.get(url, params={"q": query})
    taken = _processor() - cpu, time.perf_counter() - begun
    assert answer.status_code == 200 and answer.json()["files"], query
    return taken


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _fzf(paths: list[str], query: str) -> float | None:
    program = shutil.which("fzf")
    if program is None:
        return None
    text = "\n".join(paths).encode()
    costs: list[float] = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        subprocess.run([program, "--filter", query], input=text, capture_output=True, check=False)
        costs.append(time.perf_counter() - begun)
    return statistics.median(costs)


@asynccontextmanager
async def _service(
    paths: list[str],
) -> AsyncGenerator[tuple[FastAPI, httpx.AsyncClient, str]]:
    with TemporaryDirectory(prefix="qd-bench-") as directory:
        home = Home(Path(directory))
        async with open_service(home, ProcessDriver(home), list) as context:
            workspace = await _asleep(context)
            index = SavedIndex(workspace, IndexOrigin.ENGINE, False, moment_text(utc_now()))
            packed = pack([("deck", paths, "u" * len(paths))])
            await context.database.write(lambda c: save_index(c, index, packed))
            app = build_app(build_service(context))
            headers = {"Authorization": f"Bearer {home.key.read_text().strip()}"}
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://bench", headers=headers
            ) as client:
                yield app, client, f"/v1/workspaces/{workspace}/repo-files/search"


async def _asleep(context: ServiceContext) -> str:
    organization = await context.database.read(only_organization)
    environment, workspace = str(uuid4()), str(uuid4())
    await context.database.write(
        lambda c: c.execute(
            insert(environments).values(
                id=environment,
                organization_id=organization,
                name="bench",
                is_global=False,
                created_at=now_text(),
                updated_at=now_text(),
            )
        )
    )
    row = {
        "organization_id": organization,
        "environment_id": environment,
        "name": "bench",
        "status": "sleeping",
        "source": "api",
        "lifecycle_policy": "default",
        "size": "small",
        "repositories_json": "[]",
        "repository_statuses_json": "[]",
        "engine_secret_sealed": "",
        "wake_wanted": False,
        "created_at": now_text(),
    }
    await context.database.write(
        lambda c: c.execute(insert(workspaces).values(id=workspace, **row))
    )
    return workspace
