from __future__ import annotations

import pytest

from tests.models.tls import Certificate, make_certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def trusted(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> Certificate:
    """A certificate that the client trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    return certificate
