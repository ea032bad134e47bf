"""`qd status`: whether the service answers, where, how fast, and what it holds."""

import asyncio
from collections import Counter
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.errors import NoService
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json
from quarterdeck.cli.target import Target, find_target
from quarterdeck.cli.words import services_text

if TYPE_CHECKING:
    from quarterdeck.client import Client


@click.command(name="status")
@common_options
def command(common: Common) -> None:
    """Say whether the service answers, where, and what it holds. Exit code 3 when it does not."""
    target = find_target(common.profile)
    report = asyncio.run(_report(target))
    if common.json:
        put_json(report)
    else:
        _print(report)
    if not report["answers"]:
        raise NoService(
            f"No service answers at {target.endpoint}.",
            "Start it with: qd serve." if target.embedded else "Check the address and the line.",
        )


async def _report(target: Target) -> dict[str, Any]:
    from quarterdeck.client.errors import LinkError

    report: dict[str, Any] = {
        "target": target.name,
        "endpoint": target.endpoint,
        "home": str(target.home.root) if target.embedded else None,
        "answers": False,
        "version": None,
        "latency_ms": None,
        "replicas": None,
        "home_id": None,
        "services": None,
    }
    async with target.client() as client:
        try:
            await _fill(client, report, with_key=target.current_key() is not None)
        except LinkError:
            return report
    return report


async def _fill(client: "Client", report: dict[str, Any], with_key: bool) -> None:
    await client.health.get()
    start = perf_counter()
    health = await client.health.get()
    report["latency_ms"] = round((perf_counter() - start) * 1000, 2)
    report["answers"] = True
    report["version"] = health.version
    if with_key:
        await _fill_services(client, report)
        report["replicas"] = Counter([replica.status async for replica in client.replicas.all()])


async def _fill_services(client: "Client", report: dict[str, Any]) -> None:
    from quarterdeck.client.errors import NotFound

    try:
        known = await client.services.list()
    except NotFound:
        return  # a service of another make, or of an earlier version
    report["services"] = known
    report["home_id"] = next((str(one.home_id) for one in known if one.own), None)


def _print(report: dict[str, Any]) -> None:
    put(f"service   {report['target']} at {report['endpoint']}")
    if report["home"]:
        put(f"home      {report['home']}")
    if not report["answers"]:
        put("state     does not answer")
        return
    put(f"state     answers in {report['latency_ms']} ms")
    put(f"version   {report['version']}")
    if report["services"]:
        put(f"services  {services_text(report['services'])}; home {report['home_id']} answers")
    counts: dict[str, int] | None = report["replicas"]
    if counts is not None:
        words = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        put(f"replicas  {words or 'none'}")
