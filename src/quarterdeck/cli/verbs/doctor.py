"""`qd doctor`: what works on this machine, what does not, and what to do."""

import asyncio
from dataclasses import asdict

import click

from quarterdeck.cli.checks.coding_agents import check_agents
from quarterdeck.cli.checks.finding import Finding, Level
from quarterdeck.cli.checks.installation import check_installation
from quarterdeck.cli.checks.machine import check_machine
from quarterdeck.cli.checks.screen import check_screen
from quarterdeck.cli.errors import NotDone
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json, safe_line
from quarterdeck.cli.target import Target, find_target


@click.command(name="doctor")
@common_options
def command(common: Common) -> None:
    """Check this machine and say what to mend. Exit code 1 when something cannot work."""
    target = find_target(common.profile)
    findings = asyncio.run(_look(target, say_each=not common.json))
    failed = [finding.name for finding in findings if finding.level is Level.FAIL]
    if common.json:
        put_json({"ok": not failed, "checks": [asdict(finding) for finding in findings]})
    if failed:
        raise NotDone(f"To mend: {', '.join(failed)}.")


async def _look(target: Target, say_each: bool) -> list[Finding]:
    findings: list[Finding] = []
    subjects = (
        check_machine(target.home),
        check_agents(target),
        check_installation(target),
        check_screen(),
    )
    for subject in subjects:
        async for finding in subject:
            findings.append(finding)
            if say_each:
                _print(finding)
    return findings


def _print(finding: Finding) -> None:
    put(f"{finding.level:<4}  {finding.name:<16}  {safe_line(finding.message)}")
    if finding.next_step:
        put(f"{'':24}{safe_line(finding.next_step)}")
