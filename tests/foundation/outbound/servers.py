"""Servers that respond exactly as a test specifies, byte by byte if necessary."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Script = Callable[[socket.socket, threading.Event], None]
"""Answers one connection whose request has been read; the event is set when the test is over."""


def say(data: bytes) -> Script:
    return lambda connection, _over: connection.sendall(data)


TLS_HANDSHAKE = b"\x16"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Seen: yes\r\n\r\nok"


class RawServer:
    """Reads one request a connection, remembers it, and answers by the script."""

    def __init__(self, *, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.script: Script = say(OK)
        self.requests: list[bytes] = []
        self.server_names: list[str | None] = []
        self._tls = tls
        if tls is not None:
            tls.sni_callback = lambda _sock, name, _context: self.server_names.append(name)
        self._over = threading.Event()
        self._listener = socket.create_server((address, 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    self._converse(connection)
                except OSError:
                    continue

    def _converse(self, connection: socket.socket) -> None:
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        with connection:
            self.requests.append(_read_request(connection))
            self.script(connection, self._over)


def _read_request(connection: socket.socket) -> bytes:
    data = _receive(connection)
    if data.startswith(TLS_HANDSHAKE):
        return data
    while b"\r\n\r\n" not in data:
        data += _receive(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(body) < length:
        body += _receive(connection)
    return head + b"\r\n\r\n" + body


def _receive(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the client closed before its request was complete")
    return data


class Authority:
    """Signs certificates that only the test's client trusts."""

    def __init__(self, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A test's authority")])
        self._certificate = self._build(self._name, self._key.public_key(), [], ca=True)
        self.file = folder / "ca.pem"
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.file))

    def server_context(self, host: str, folder: Path) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        certificate = self._build(name, key.public_key(), [x509.DNSName(host)], ca=False)
        file = folder / f"{host}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _build(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        names: list[x509.GeneralName],
        *,
        ca: bool,
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if ca:
            usage = x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                crl_sign=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            )
            builder = builder.add_extension(usage, critical=True)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())
