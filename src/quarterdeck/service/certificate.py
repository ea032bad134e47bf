"""The certificate of the listener for containers on other machines.

It is made by the service itself, and containers are given it when they are started, so no authority is
needed. It does not end: its date is the one that RFC 5280 gives for that.
"""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from quarterdeck.local.files import write_file

NO_END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
EARLIER = timedelta(days=1)
"""Clocks of other machines may be late."""


def certificate_for(path: Path, host: str) -> str:
    """Return the certificate for a host's name or address, in PEM; made unless it is there.

    Args:
        path: of the file that holds it and its key.
    """
    try:
        known = x509.load_pem_x509_certificate(path.read_bytes())
        if _names_of(known) == [_name_of(host)]:
            return known.public_bytes(Encoding.PEM).decode()
    except (OSError, ValueError, x509.ExtensionNotFound):
        pass  # there is none yet, or not a whole one
    key = ec.generate_private_key(ec.SECP256R1())
    made = _make(key, host).public_bytes(Encoding.PEM).decode()
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_file(path, secret + made)
    return made


def _make(key: ec.EllipticCurvePrivateKey, host: str) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "quarterdeck")])
    public = key.public_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - EARLIER)
        .not_valid_after(NO_END)
        .add_extension(x509.SubjectAlternativeName([_name_of(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, SHA256())
    )


def _names_of(certificate: x509.Certificate) -> list[x509.GeneralName]:
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return list(found.value)


def _name_of(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
