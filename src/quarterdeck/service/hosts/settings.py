"""What an operator says of the source hosts."""

from dataclasses import dataclass, field

HOST_A, HOST_B, LOCAL = "host-a", "host-b", "local"


@dataclass(frozen=True)
class HostSettings:
    """One host. Without a secret its webhooks are refused; without a token no check is written there.

    `api_url` is the base of its REST API, without a slash at the end.
    """

    webhook_secret: str | None = field(default=None, repr=False)
    api_url: str | None = None
    token: str | None = field(default=None, repr=False)

    @property
    def writable(self) -> bool:
        """Whether checks can be written there."""
        return self.api_url is not None and self.token is not None


NO_HOST = HostSettings()


@dataclass(frozen=True)
class HostsSettings:
    """Both hosts."""

    host_a: HostSettings = NO_HOST
    host_b: HostSettings = NO_HOST

    def of(self, host: str) -> HostSettings:
        """The settings of a host by its name; those of none for another."""
        return {HOST_A: self.host_a, HOST_B: self.host_b}.get(host, NO_HOST)


NO_HOSTS = HostsSettings()
