"""TLS with one certificate that is known, instead of the authorities that a machine trusts."""

import ssl
from pathlib import Path


def pinned_context(certificate: Path) -> "ssl.SSLContext":
    """Return a client's context that accepts a certificate, and those that it has signed.

    The name of the server is checked as well.

    Raises:
        OSError: the file cannot be read, or holds no certificate.
    """
    context = ssl.create_default_context(cafile=certificate)
    # Also a server's own certificate is taken, and one that lacks what newer rules ask of authorities.
    context.verify_flags = ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
