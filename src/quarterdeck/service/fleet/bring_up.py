"""From a row to a running engine: files, configuration, process."""

import json
import logging

from quarterdeck.sandboxes.port import Concern, RepositorySource
from quarterdeck.service.fleet.branches import branch_of
from quarterdeck.service.fleet.site import Site
from quarterdeck.service.moments import moment_text
from quarterdeck.service.patience import until_stored
from quarterdeck.service.records.events import NewEvent
from quarterdeck.service.records.workspaces import WorkspaceRow, change_workspace
from quarterdeck.service.workspace_setup.composing import Composed, compose
from quarterdeck.service.workspace_setup.way_out import way_out
from quarterdeck.wire.engine import EngineConfig, EngineRepository
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import EventType
from quarterdeck.wire.replicas import WorkspaceStatus

log = logging.getLogger(__name__)


async def bring_up(site: Site, row: WorkspaceRow) -> None:
    """Starts the workspace's engine, unless it runs.

    Safe to be cut short anywhere and done again.

    Raises:
        SandboxError: the files cannot be made, or the engine does not start.
    """
    sandboxes = site.tools.context.sandboxes
    if await sandboxes.alive(site.id):
        return
    async with site.tools.slots:
        await _restore(site, row)
        sources = [RepositorySource(**one) for one in json.loads(row.repositories_json)]
        concerns: list[Concern] = []

        def report(line: str) -> None:
            _report(site, line)
            if isinstance(line, Concern):
                concerns.append(line)

        repositories = await sandboxes.provision(site.id, sources, branch_of(row.name), report)
        await _tell(site, concerns)
        composed = await _compose(site, row)
        await sandboxes.write_config(site.id, await _config(site, row, repositories, composed))
        await _note_start(site, row, composed)
        await sandboxes.start(site.id)
    site.pulse.progress = None


async def _tell(site: Site, concerns: list[Concern]) -> None:
    told = [
        NewEvent(EventType.ERROR, {"code": ErrorCode.CONFLICT, "message": concern})
        for concern in concerns
    ]
    event_log = site.tools.context.event_log
    if told:
        await until_stored(lambda: event_log.append(site.id, told))


async def _restore(site: Site, row: WorkspaceRow) -> None:
    if row.packed_at is not None:
        _report(site, "Restoring the files from their archive")
    await site.tools.context.sandboxes.unpack(site.id, packed=row.packed_at is not None)


async def _compose(site: Site, row: WorkspaceRow) -> Composed:
    context = site.tools.context
    return await until_stored(lambda: compose(context, row, lambda line: _report(site, line)))


async def _config(
    site: Site, row: WorkspaceRow, repositories: list[EngineRepository], composed: Composed
) -> str:
    sandboxes = site.tools.context.sandboxes
    layout = await sandboxes.layout(site.id)
    isolation = await sandboxes.isolation()
    config = EngineConfig(
        workspace_id=row.id,  # pyright: ignore[reportArgumentType] - text is read as an id
        secret=row.engine_secret,
        workspace_dir=layout.workspace_dir,
        state_dir=layout.state_dir,
        run_dir=layout.run_dir,
        isolation=isolation.mode,
        repositories=repositories,
        environment=composed.variables | way_out(row, layout.service_socket),
        setup=composed.setup,
        agents=dict(site.tools.context.own_agents),
        hold_queues=True,
    )
    return config.model_dump_json(by_alias=True)


async def _note_start(site: Site, row: WorkspaceRow, composed: Composed) -> None:
    """From here on this start of the machine is the one that the engine runs in."""
    columns: dict[str, str | None] = {
        "boot_id": site.tools.settings.boot_id,
        "packed_at": None,
        "setup_json": composed.told(moment_text(site.tools.context.clock())),
    }
    if row.status == WorkspaceStatus.PREPARING:
        columns["engine_version"] = None  # set again by the engine's `engine.ready`
    database = site.tools.context.database
    await until_stored(lambda: database.write(lambda c: change_workspace(c, row.id, **columns)))


def _report(site: Site, line: str) -> None:
    site.pulse.progress = line
    log.debug("%s: %s", site.id, line)
