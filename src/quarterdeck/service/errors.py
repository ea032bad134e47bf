"""The service's error tree.

    ServiceError
    |-- ApiError              an error response: raise it anywhere below a route
    |-- StorageError          the database cannot be read or written
    |   |-- DatabaseFullError      no space left; nothing of the write was kept
    |   |-- DatabaseLockedError    another program holds the database, or it stopped a statement
    |   |-- DatabaseReadOnlyError  it accepts no writes
    |   |-- DatabaseLostError      its server cannot be reached
    |   |-- DatabaseClosedError    used after `close`
    |   |-- SealedError            a secret cannot be opened with the installation's key
    |   |-- DamagedRecordError     a row is not valid
    |   `-- NewerDatabaseError     written by a newer version of the program
    |-- UnknownWorkspaceError events were to be appended to a deleted workspace
    `-- StartError            the service cannot start; the text says what to do
        |-- HomeInUseError         another service runs on this home
        |-- HomeUnusableError      its directories cannot be made or read
        |-- ForeignDatabaseError   the database belongs to another master key
        `-- ListenError            a socket cannot be opened
            `-- AddressInUseError       something else listens there

A violated constraint stays SQLAlchemy's `IntegrityError`: the writer knows its meaning.
"""

from quarterdeck.wire.errors import STATUS_OF, ErrorCode, ErrorObject


class ServiceError(Exception):
    """Base of everything the service raises on purpose. `args[0]` is for a person."""


class ApiError(ServiceError):
    """Ends a request with the contract's Error object; the status follows from the code."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        details: str | None = None,
        retry_after: int | None = None,
        conflicts: list[str] | None = None,
    ) -> None:
        """`retry_after` is in seconds, and goes into the header of that name."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details
        self.retry_after = retry_after
        self.conflicts = conflicts

    @property
    def status(self) -> int:
        """The HTTP status of `code`."""
        return STATUS_OF[self.code]

    def as_object(self) -> ErrorObject:
        """Return the response's body."""
        return ErrorObject(
            error=self.message, details=self.details, code=self.code, conflicts=self.conflicts
        )


class StorageError(ServiceError):
    """The database cannot be read or written. Nothing of a failed write was kept.

    The text is for every caller. `reason` is the driver's message, which may name hosts and paths:
    it is for the log, and for the operator who starts the service.
    """

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason

    def for_operator(self) -> str:
        """Return the text with its reason."""
        return f"{self} ({self.reason})" if self.reason else str(self)


class DatabaseFullError(StorageError):
    """No space is left on the disk of the database."""


class DatabaseLockedError(StorageError):
    """Another program holds the database for longer than a time limit."""


class DatabaseReadOnlyError(StorageError):
    """The database accepts no writes: a read-only file or disk, a standby server."""


class DatabaseLostError(StorageError):
    """The database's server cannot be reached, or the connection to it broke.

    When it broke during a commit, it is not known whether the write was kept. `Database` logs that
    the server was lost, and that it is back; nobody else needs to.
    """


class DatabaseClosedError(StorageError):
    """The database was used after it was closed."""


class SealedError(StorageError):
    """A secret was sealed with another key, for another row, or was changed."""


class DamagedRecordError(StorageError):
    """A row that a record is read from is not valid. `reason` names its id and field."""


class NewerDatabaseError(StorageError):
    """The database was written by a newer version of the program."""


class UnknownWorkspaceError(ServiceError):
    """Events were to be appended to a workspace that does not exist (any more)."""


class StartError(ServiceError):
    """The service cannot start."""


class HomeInUseError(StartError):
    """Another service runs on this home; `pid` is its process, when known."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


class HomeUnusableError(StartError):
    """The home's directories cannot be made, read or written."""


class InvalidMasterKeyError(HomeUnusableError):
    """The file of the master key does not hold a key."""


class ForeignDatabaseError(StartError):
    """The database belongs to another master key; nothing in it was changed."""


class ListenError(StartError):
    """A socket cannot be opened."""


class AddressInUseError(ListenError):
    """Another program listens on the address."""
