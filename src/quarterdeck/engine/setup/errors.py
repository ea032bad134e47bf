"""Why a workspace does not get ready."""


class SetupFailed(Exception):
    """The text is for a person and names what failed: it becomes the replica's error."""
