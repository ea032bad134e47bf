"""Files that an environment writes into its workspaces (specification, operation 8; INTERFACE 7)."""

from typing import Annotated

from pydantic import AfterValidator, Field

from quarterdeck.wire.base import Body, Id, Patch, Record, Timestamp
from quarterdeck.wire.stored_text import ONE_LINE, Text, bytes_at_most

CONTENT_LIMIT = 65_536
"""Most bytes of a file."""
PATH_LIMIT = 1_024
PART_LIMIT = 255
"""Most bytes between two slashes of a path: file systems take no longer name."""
NAME_LIMIT = 255
HOME_MARK = "~/"


def _below_home(path: str) -> str:
    if not path.startswith(HOME_MARK):
        raise ValueError(f"it must begin with {HOME_MARK}")
    parts = path.removeprefix(HOME_MARK).split("/")
    if not all(parts) or {".", ".."} & set(parts):
        raise ValueError("it must name a file; . and .. and empty parts are not allowed")
    if any(len(part.encode()) > PART_LIMIT for part in parts):
        raise ValueError(f"none of its names may be longer than {PART_LIMIT} bytes")
    return path


FilePath = Annotated[
    str,
    Field(min_length=3, max_length=PATH_LIMIT),
    ONE_LINE,
    bytes_at_most(PATH_LIMIT),
    AfterValidator(_below_home),
]
Content = Annotated[Text, bytes_at_most(CONTENT_LIMIT)]
Name = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT), ONE_LINE]


class EnvironmentFile(Record):
    """A file that is written at `path` when a workspace is provisioned."""

    id: Id
    organization_id: Id
    environment_id: Id
    name: str
    path: str
    content: Annotated[str, Field(repr=False)]
    created_at: Timestamp
    updated_at: Timestamp


class EnvironmentFileList(Record):
    """Answer of `GET .../files`, by path."""

    environment_files: list[EnvironmentFile]


class EnvironmentFileAnswer(Record):
    """Answer of making or changing a file."""

    environment_file: EnvironmentFile


class CreateFile(Body):
    """Body of `POST .../files`; without a name it is the last part of the path."""

    path: FilePath
    content: Annotated[Content, Field(repr=False)]
    name: Name | None = None


class ChangeFile(Patch):
    """Body of `PATCH .../files/{id}`; what is not given stays."""

    name: Name = Field(default_factory=str)
    path: FilePath = Field(default_factory=str)
    content: Content = Field(default_factory=str, repr=False)
