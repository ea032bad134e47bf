"""The `process` driver: sandboxes as processes of this machine, without a daemon.

    ProcessDriver ── probe      what this machine can do, found once by trying it
                  ├─ mirrors    a bare mirror per repository
                  ├─ clones     a workspace's directories and its repositories
                  └─ runtime    start, find, stop: launcher -> bubblewrap -> engine
"""

import asyncio
from collections.abc import Sequence

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.port import (
    Isolation,
    Layout,
    MirrorInfo,
    Progress,
    RepositorySource,
)
from quarterdeck.wire.engine import EngineRepository


class ProcessDriver:
    """A `SandboxDriver` that runs engines in bubblewrap, or as plain processes without it.

    Args:
        home: the installation; workspaces and mirrors lie in it.
        sandbox_user: who runs inside when the service is root: a name or a uid. Default: the
            variable `QD_SANDBOX_USER`, else a fixed high uid that needs no account.
        engine: the engine's command, to which `--run-dir DIR` is added.
        start_limit: seconds an engine may take until its socket answers.
        grace: seconds between SIGTERM and SIGKILL in `stop`.
    """

    def __init__(
        self,
        home: Home,
        *,
        sandbox_user: str | None = None,
        engine: Sequence[str] | None = None,
        start_limit: float = 20.0,
        grace: float = 3.0,
    ) -> None:
        self._home = home
        self._settings = (sandbox_user, engine, start_limit, grace)

    async def isolation(self) -> Isolation:
        raise NotImplementedError

    async def connect_repository(self, repository_id: str, url: str) -> MirrorInfo:
        raise NotImplementedError

    async def provision(
        self, workspace_id: str, repositories: list[RepositorySource], branch: str, report: Progress
    ) -> list[EngineRepository]:
        raise NotImplementedError

    async def layout(self, workspace_id: str) -> Layout:
        raise NotImplementedError

    async def write_config(self, workspace_id: str, text: str) -> None:
        raise NotImplementedError

    async def start(self, workspace_id: str) -> None:
        raise NotImplementedError

    async def alive(self, workspace_id: str) -> bool:
        raise NotImplementedError

    async def connect(self, workspace_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raise NotImplementedError

    async def stop(self, workspace_id: str) -> None:
        raise NotImplementedError

    async def destroy(self, workspace_id: str) -> None:
        raise NotImplementedError
