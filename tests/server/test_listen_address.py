"""Addresses as users write them, and which of them need TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import BadInput, CannotOpen
from recollect.server.listen_address import (
    ListenAddress,
    load_tls,
    parse_address,
    refuse_clear_text,
)


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("127.0.0.1:9999", "127.0.0.1", 9999),
        (":0", "127.0.0.1", 0),
        ("[::1]:80", "::1", 80),
        ("localhost:8080", "localhost", 8080),
    ],
)
def test_an_address_is_a_host_and_a_port(given: str, host: str, port: int) -> None:
    address = parse_address(given)
    assert address == ListenAddress(host, port)
    assert address.is_loopback


@pytest.mark.parametrize("given", ["", "127.0.0.1", "x:", "x:-1", "x:65536", "x:8080a", "x:٣"])
def test_what_is_no_address_is_refused_with_an_example(given: str) -> None:
    with pytest.raises(BadInput, match="HOST:PORT"):
        parse_address(given)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_an_address_that_others_reach_needs_tls(host: str) -> None:
    address = ListenAddress(host, 9999)
    with pytest.raises(BadInput, match="--tls-cert"):
        refuse_clear_text(address, has_tls=False, tls_in_front=False)
    refuse_clear_text(address, has_tls=True, tls_in_front=False)
    refuse_clear_text(address, has_tls=False, tls_in_front=True)


def test_a_certificate_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("nothing")
    with pytest.raises(CannotOpen, match=r"cert\.pem"):
        load_tls(tmp_path / "cert.pem", tmp_path / "key.pem")
