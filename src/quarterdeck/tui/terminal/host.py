"""`EmulatorHost`: the cockpit's end of the child process in which all emulators run."""


class EmulatorHost:
    """Starts the child at the first terminal, restarts it when it dies. One per cockpit."""

    async def close(self) -> None:
        """Ends the child and every terminal."""
