"""A service with a repository that has something to look for and to read."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quarterdeck.store.creation import CreationRequest, create
from quarterdeck.wire.replicas import ReplicaDetail
from tests.support.git import commit_files
from tests.support.tools import require
from tests.tui_shell.live import Installation

FILES = {
    "README.md": "# A shop\n\nSells *apples*.\n",
    "src/shop/basket.py": '"""What is bought."""\n\n\ndef total(prices):\n    return sum(prices)\n',
    "src/shop/till.py": "def pay(amount):\n    raise NotImplementedError\n",
    "docs/naïve name.txt": "one\ttwo\n" + "wide " * 60 + "\n",
    **{f"data/part-{number:03}.txt": f"part {number}\n" for number in range(300)},
}


def make_repository(path: Path, files: dict[str, str] = FILES) -> None:
    """A repository with one commit."""
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    (path / "logo.bin").write_bytes(bytes(range(256)))
    commit_files(path)


@contextmanager
def running_shop(work: Path, files: dict[str, str] = FILES) -> Iterator[Installation]:
    """A running service beside the repository."""
    require("git")
    with tempfile.TemporaryDirectory(prefix="qd-") as directory:
        repository = work / "shop"
        repository.mkdir()
        make_repository(repository, files)
        # Not pytest's own directory: sockets have short names, and sandboxes another user.
        Path(directory).chmod(0o755)
        made = Installation(Path(directory) / "home", repository)
        made.start()
        try:
            yield made
        finally:
            made.stop()


async def open_shop(live: Installation, name: str, message: str = "") -> ReplicaDetail:
    """A replica with the repository."""
    async with live.client() as client:
        wish = CreationRequest(repository_url=str(live.repository), name=name, message=message)
        return await create(client, wish, ())
