"""A certificate made for a test, and what a server needs to show it."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    """Signed by itself, for localhost, 127.0.0.1 and model.invalid."""

    file: Path
    http1: ssl.SSLContext
    http2: ssl.SSLContext
    either: ssl.SSLContext  # HTTP/2, or HTTP/1.1 for clients that want it
    subject_hash: str  # its file's name in a directory of authorities


def make_certificate(folder: Path) -> Certificate:
    key, file = folder / "key.pem", folder / "certificate.pem"
    names = "subjectAltName=DNS:localhost,DNS:model.invalid,IP:127.0.0.1"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command = ["openssl", "req", "-x509", *kind, "-subj", "/CN=localhost", "-addext", names]
    subprocess.run([*command, "-keyout", key, "-out", file], check=True, capture_output=True)
    named = ["openssl", "x509", "-subject_hash", "-noout", "-in", str(file)]
    found = subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()
    http1, http2 = _serving(file, key, "http/1.1"), _serving(file, key, "h2")
    return Certificate(file, http1, http2, _serving(file, key, "h2", "http/1.1"), found)


def _serving(file: Path, key: Path, *protocols: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file, key)
    context.set_alpn_protocols(list(protocols))
    return context
