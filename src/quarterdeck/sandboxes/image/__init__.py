"""The image of replicas: what it is built from."""

import io
import tarfile
from importlib.metadata import requires
from pathlib import Path
from typing import BinaryIO

import quarterdeck
from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.wire.engine_versions import is_supported, supported_text

VERSION_LABEL = "quarterdeck.version"
"""The version of the engine in an image."""
AGENTS_LABEL = "quarterdeck.agents"
"""The agents that were built in, with their versions."""
DEFAULT_IMAGE = f"qd-replica:{quarterdeck.__version__}"

_DOCKERFILE = Path(__file__).with_name("Dockerfile")
_PROGRAM = Path(quarterdeck.__file__).parent
_LEFT_OUT = ("tui", "service", "store", "transcript")
"""Packages of the cockpit and the service, which nothing in a replica imports."""


def check_version(image: str, version: str | None) -> None:
    """Check that the service works with the engine in an image.

    Args:
        version: by the image's label.

    Raises:
        SandboxError: it does not.
    """
    if version is None:
        raise SandboxError(
            f"{image} is not a replica image: it has no label {VERSION_LABEL}. Build one with: qd image "
            "build, or build your own FROM it."
        )
    if not is_supported(version):
        raise SandboxError(
            f"The engine in {image} is of version {version}, and this service works with "
            f"{supported_text()}. Build the image again with: qd image build, and then your own FROM it."
        )


def engine_requirements() -> list[str]:
    """Return what the engine needs, from the extra `engine`."""
    marked = (text.partition(";") for text in requires("quarterdeck") or ())
    return [
        requirement.strip()
        for requirement, _, marker in marked
        if marker.replace("'", '"').strip() == 'extra == "engine"'
    ]


def write_context(file: BinaryIO, wheels: Path | None = None, agents: Path | None = None) -> None:
    """Write the archive that an image is built from.

    Args:
        wheels: a directory with packages, which are then installed without an index.
        agents: a directory with agents, as npm installs them.
    """
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        _add_text(tar, "Dockerfile", _DOCKERFILE.read_text())
        _add_text(tar, "requirements.txt", "\n".join(engine_requirements()) + "\n")
        for name in ("wheels", "agents"):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(directory)
        for path in sorted(agents.iterdir()) if agents else ():
            tar.add(path, f"agents/{path.name}", filter=_readable)
        for wheel in sorted(wheels.glob("*.whl")) if wheels else ():
            tar.add(wheel, f"wheels/{wheel.name}")
        tar.add(_PROGRAM, "quarterdeck", filter=_needed)


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text.encode()), 0o644
    tar.addfile(entry, io.BytesIO(text.encode()))


def _needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(entry.name).parts[1:]
    if "__pycache__" in parts or (parts and parts[0] in _LEFT_OUT):
        return None
    entry.mode = 0  # no file of a package is a program
    return _readable(entry)


def _readable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
