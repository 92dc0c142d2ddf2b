"""Addresses and certificates of a fleet; explains why a connection fails."""

import os
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ir_scatter.core.errors import Absent, UsageError
from ir_scatter.core.files import read_regular
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.words import listed

if TYPE_CHECKING:
    from distributed import Security

_PATIENCE = 5.0
"""Time limit, in seconds, for the scheduler's first answer."""
_DAYS = 365
_MOST = 1 << 20
"""Maximum size of a certificate file in bytes; all public authorities together take a fifth of it."""
_PORT = 8786
NAMES = ("ca.pem", "lab.pem", "lab-key.pem")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a scheduler, and the certificates for connections to it.

    Attributes:
        text: the address: "tls://lab:8786".
        ca: file of the certificate authority; "" for the one in Dask's configuration.
        cert: file of the certificate; "" for the one in Dask's configuration.
        key: file of the private key; "" for the one in Dask's configuration.
        is_insecure: whether tcp:// is allowed for an address that other machines can reach.
    """

    text: str
    ca: str = ""
    cert: str = ""
    key: str = ""
    is_insecure: bool = False

    @property
    def parts(self) -> tuple[str, str, int]:
        """(protocol, host, port).

        Raises:
            UsageError: the text is not an address, or it is unencrypted and other machines can reach it.
        """
        try:
            split = urlsplit(self.text)
            protocol, host, port = split.scheme, split.hostname or "", split.port
        except ValueError:
            protocol, host, port = "", "", None
        if protocol not in {"tls", "tcp"} or not host:
            raise UsageError(
                f"{self.text!r} is not the address of a scheduler, expected one like tls://lab:{_PORT}"
            )
        if protocol == "tcp" and not (self.is_insecure or _is_loopback(host)):
            message = f"{self.text} lets anyone who can reach it run code here; use tls:// and certificates"
            raise UsageError(f"{message}, or pass {Parameter('insecure', True)}")
        return protocol, host, _PORT if port is None else port

    def security(self) -> "Security":
        """Return the security settings for Dask's connections.

        Raises:
            UsageError: certificates are missing, or cannot be read.
        """
        from distributed import Security

        protocol, _, _ = self.parts
        if protocol == "tcp":
            return Security(require_encryption=False)
        options: dict[str, Any] = {"tls_ca_file": self.ca} if self.ca else {}
        for role in ("client", "scheduler", "worker"):
            pair = {f"tls_{role}_cert": self.cert, f"tls_{role}_key": self.key}
            options |= {name: file for name, file in pair.items() if file}
        security = Security(require_encryption=True, **options)
        if not (security.tls_ca_file and security.tls_client_cert):
            files = listed([str(Parameter(f"tls_{role}")) for role in ("ca", "cert", "key")])
            raise UsageError(f"{self.text} needs {files}, or what Dask is configured with")
        try:
            for role in ("client", "scheduler", "worker"):
                files = security.get_tls_config_for_role(role)
                for file in filter(None, (files["ca_file"], files["cert"], files["key"])):
                    if "\n" not in file:  # otherwise the text is the certificate itself
                        read_regular(file, _MOST)
            security.get_connection_args("client")
        except (OSError, ssl.SSLError) as error:
            files = (
                ", ".join(filter(None, (self.ca, self.cert, self.key))) or "the files of Dask's configuration"
            )
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{files}: no certificates that can be used: {reason.lower()}") from None
        return security


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def demand_reachable(address: Address) -> None:
    """Check that a scheduler answers at an address, and that both sides accept the certificates.

    Raises:
        Absent: it does not answer, or a side refuses; the message has the reason.
    """
    protocol, host, port = address.parts
    context = address.security().get_connection_args("client").get("ssl_context")
    try:
        with socket.create_connection((host, port), _PATIENCE) as plain:
            if protocol == "tcp":
                plain.recv(1)
                return
            with context.wrap_socket(plain, server_hostname=host) as secure:
                secure.recv(1)  # here the scheduler reports it if it refuses our certificate
    except ssl.SSLCertVerificationError as error:
        raise Absent(f"{address.text}: its certificate is not accepted: {error.verify_message}") from None
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        raise Absent(f"{address.text} refuses a connection with these certificates: {reason}") from None
    except TimeoutError:
        raise Absent(f"{address.text} cannot be reached: no answer within {_PATIENCE:g} seconds") from None
    except OSError as error:
        raise Absent(f"{address.text} cannot be reached: {(error.strerror or str(error)).lower()}") from None


def make_certificates(folder: str) -> list[Path]:
    """Write a certificate authority for a fleet, and one certificate for all machines, valid for a year.

    The authority's key is discarded, so that nobody can sign further certificates.

    Raises:
        UsageError: the files exist already, or the package `cryptography` is missing.
    """
    from datetime import UTC, datetime, timedelta

    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise UsageError("certificates are made with cryptography: pip install 'ir-scatter[fleet]'") from None
    from ir_scatter.core.atomic_write import Output, replace_files

    paths = [Path(folder) / name for name in NAMES]
    for path in paths:
        if path.exists():
            raise UsageError(
                f"{path} exists already; if it were replaced, machines that use it could not connect any more"
            )
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    subjects = [
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        for name in ("ir-scatter lab authority", "ir-scatter lab")
    ]
    now, written = datetime.now(UTC), list[bytes]()
    for number, (key, subject) in enumerate(zip(keys, subjects, strict=True)):
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subjects[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=_DAYS))
            .add_extension(x509.BasicConstraints(ca=number == 0, path_length=None), critical=True)
            .sign(keys[0], hashes.SHA256())
        )
        written.append(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    written.append(keys[1].private_bytes(serialization.Encoding.PEM, *form))
    Path(folder).mkdir(parents=True, exist_ok=True)
    mask = os.umask(0o077)  # only the owner may read the key
    try:
        replace_files([Output(path, data) for path, data in zip(paths, written, strict=True)])
    finally:
        os.umask(mask)
    return paths
