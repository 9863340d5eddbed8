"""TLS in front of a server without TLS: a self-signed certificate, and a proxy that terminates
TLS.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def make_certificate(folder: Path, address: str = "127.0.0.1") -> tuple[Path, Path]:
    """Return a self-signed certificate and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a test")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, secret = folder / "certificate.pem", folder / "key.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    plain = serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return pem, secret


@contextmanager
def tls_in_front_of(port: int, certificate: Path, key: Path) -> Iterator[int]:
    """Accept TLS connections and forward them to a local port; yield the proxy's port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, context, port), daemon=True).start()
        yield int(listener.getsockname()[1])


def _accept(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, context, port), daemon=True).start()


def _serve(client: socket.socket, context: ssl.SSLContext, port: int) -> None:
    """Serve both directions in one thread: two threads on one TLS connection would block each
    other.
    """
    with contextlib.suppress(OSError), context.wrap_socket(client, server_side=True) as near:
        near.settimeout(0.005)
        with socket.create_connection(("127.0.0.1", port)) as far:
            far.settimeout(0.005)
            while _pass_on(near, far) and _pass_on(far, near):
                pass


def _pass_on(source: socket.socket, target: socket.socket) -> bool:
    try:
        data = source.recv(65_536)
    except TimeoutError:
        return True
    target.settimeout(30.0)
    target.sendall(data)
    target.settimeout(0.005)
    return bool(data)
