"""The driver for replicas in a cluster, whose files can be reached only while their pods run."""

import asyncio
import logging
from pathlib import Path

from quarterdeck.sandboxes.containers import ContainerDriver
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.port import KeptContent, KeptFile, Size

LOOK_SECONDS = 2.0
"""Pause between two looks at a pod that is not connected."""

log = logging.getLogger(__name__)


class KubernetesDriver(ContainerDriver):
    """A `SandboxDriver` over a cluster. What is read without a pod is read from the last save."""

    async def start(self, workspace_id: str, size: Size = "small") -> None:
        try:
            await super().start(workspace_id, size)
        except SandboxError:
            # A pod that cannot run would be tried for ever, and take room when there is some.
            await self._containers.stop(workspace_id)
            raise

    async def alive(self, workspace_id: str) -> bool:
        found = await self._containers.find(workspace_id)
        if not found.is_wanted and found.reason:
            log.warning("The pod of %s does not run: %s", workspace_id, found.reason)
        return found.is_wanted

    async def connect(self, workspace_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a byte stream to the engine, unless its pod is lost meanwhile.

        Raises:
            ConnectionError: it is lost, or ended.
        """
        taking = asyncio.create_task(super().connect(workspace_id))
        try:
            while not (await asyncio.wait({taking}, timeout=LOOK_SECONDS))[0]:
                if not await self.alive(workspace_id):
                    raise ConnectionResetError("The pod does not run.")
            return await taking
        finally:
            taking.cancel()

    async def copy_files(self, source_id: str, workspace_id: str) -> bool:
        return False  # a volume has one pod

    async def pack(self, workspace_id: str) -> None:
        """Stop it: its claim stays, and without one its work is in the last save."""
        await self.stop(workspace_id)

    async def kept_files(self, workspace_id: str, directory: str) -> list[KeptFile]:
        place = self._below_home(workspace_id, directory)
        return await self.saved_work.files(workspace_id, f"{place}/")

    async def kept_file(
        self, workspace_id: str, directory: str, name: bytes, most: int
    ) -> KeptContent | None:
        if b".." in name.split(b"/") or b"\0" in name:
            return None
        place = self._below_home(workspace_id, directory)
        path = f"{place}/{name.decode(errors='surrogateescape')}"
        return await self.saved_work.file(workspace_id, path, most)

    def _below_home(self, workspace_id: str, directory: str) -> str:
        return f"{Path(self._containers.layout(workspace_id).home_dir).name}/{directory}"
