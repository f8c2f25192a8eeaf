"""Whose certificates are trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import Unreachable
from recollect.models.http_model import HttpModel
from recollect.settings import TransportSettings
from tests.models.posting import opened, post, run, why_it_fails
from tests.models.proxy import proxying
from tests.models.server import HELLO, QUICK, chosen, events_of, http, serving
from tests.models.tls import Certificate


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Certificate) -> None:
    async def main() -> None:
        async with (
            serving(http(HELLO), over=certificate.http1) as server,
            HttpModel(chosen(f"https://localhost:{server.port}"), QUICK) as model,
        ):
            with pytest.raises(Unreachable, match="its certificate is not trusted"):
                await events_of(model)
            assert server.asked == []

    run(main())


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_the_authorities_of_the_environment_are_trusted(
    variable: str, certificate: Certificate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv(variable, str(certificate.file if "FILE" in variable else tmp_path))
    (tmp_path / f"{certificate.subject_hash}.0").write_bytes(certificate.file.read_bytes())

    async def main() -> None:
        async with serving(http(b"one"), over=certificate.http1) as server, opened() as client:
            assert (await post(client, f"https://localhost:{server.port}")).body == b"one"

    run(main())


def test_a_certificate_for_another_host_is_refused(trusted: Certificate) -> None:
    async def main() -> str:
        async with (
            serving(http(b"one"), over=trusted.http1) as server,
            proxying(server.port) as proxy,
        ):
            settings = TransportSettings(proxy=f"http://127.0.0.1:{proxy.port}")
            return await why_it_fails("https://other.invalid", settings)

    assert "its certificate is not trusted (Hostname mismatch" in run(main())


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_authorities_that_cannot_be_read_are_named(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "file"))
    why = run(why_it_fails("https://localhost:1"))
    assert why == "the certificates named by SSL_CERT_FILE or SSL_CERT_DIR cannot be read"


def test_for_a_plain_address_no_authority_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")  # reading it would fail

    async def main() -> None:
        async with serving(http(b"one")) as server, opened() as client:
            assert (await post(client, server.url)).body == b"one"

    run(main())
