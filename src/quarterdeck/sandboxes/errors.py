"""Errors of sandboxes and of the repositories in them."""


class SandboxError(Exception):
    """The driver could not do what was requested. `args[0]` is for a person; `details` may hold output."""

    def __init__(self, message: str, details: str | None = None) -> None:
        super().__init__(message)
        self.details = details


class NotARepositoryError(SandboxError):
    """The URL or path names no git repository."""


class UnknownBranchError(SandboxError):
    """The repository has no such branch."""


class UnknownBaseError(SandboxError):
    """The repository has no such branch, tag, commit or pull request."""


class CloneError(SandboxError):
    """Cloning failed; `details` holds git's last lines."""


class PushError(SandboxError):
    """A push was refused; `details` holds git's last lines. Nothing was changed at the source."""


class ProcessError(Exception):
    """A command failed; `said` is the end of its standard error."""

    def __init__(self, said: bytes) -> None:
        super().__init__(said.decode(errors="replace"))
        self.said = said


class ArchiveError(SandboxError):
    """A workspace's archive is missing or damaged; its remains were left alone."""


class SaveRepairedError(SandboxError):
    """A save was damaged, and was replaced by one with what could be read of it. Save again."""


class DiskFullError(SandboxError):
    """The disk is full; the operation has to be repeated."""


class NotAwakeError(SandboxError):
    """The replica has to be woken before its files can be read."""


class EngineAwayError(SandboxError):
    """What runs the sandboxes does not answer now; they may well run."""


class IsolationError(SandboxError):
    """No sandbox can be run here; the text says why and what to do."""
