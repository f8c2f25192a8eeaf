"""Tokens: made once, compared by hash, refused as soon as they are removed."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from recollect.errors import AlreadyExists, BadInput, BadSettings, NotFound
from recollect.server.access import Identity
from recollect.server.token_files import (
    OWN_TOKEN,
    ServerTokens,
    add_token,
    named_tokens,
    own_token,
    read_own_token,
    remove_token,
)


def test_the_users_own_token_is_made_once_and_readable_only_by_the_user(tmp_path: Path) -> None:
    assert read_own_token(tmp_path) is None
    first = own_token(tmp_path)
    again = own_token(tmp_path)
    assert (first.is_new, again.is_new) == (True, False)
    assert first.token == again.token == read_own_token(tmp_path)
    assert len(first.token) >= 43  # 256 bits
    assert first.file is not None
    assert stat.S_IMODE(first.file.stat().st_mode) == 0o600


def test_a_token_opens_what_it_was_made_for(tmp_path: Path) -> None:
    own = own_token(tmp_path).token
    tokens = ServerTokens(own, tmp_path)
    assert tokens.identify(own) == Identity("", "admin", all_sessions=True)
    for wrong in ("", own[:-1], own + "x", "é", "\udc80"):
        assert tokens.identify(wrong) is None
    alice = add_token("alice", "read", home=tmp_path)
    assert tokens.identify(alice) == Identity("alice", "read")  # without a restart
    remove_token("alice", tmp_path)
    assert tokens.identify(alice) is None
    assert tokens.identify(own) is not None


def test_only_hashes_of_named_tokens_are_stored(tmp_path: Path) -> None:
    made = add_token("alice", "chat", all_sessions=True, home=tmp_path)
    (file,) = (path for path in tmp_path.iterdir() if path.suffix == ".json")
    assert made not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (known,) = named_tokens(tmp_path)
    assert known.identity == Identity("alice", "chat", all_sessions=True)


@pytest.mark.parametrize("name", ["", "a b", "../x", "a\n", "é", "x" * 65, "-a"])
def test_a_tokens_name_is_a_plain_word(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        add_token(name, "chat", home=tmp_path)


def test_names_are_unique_and_unknown_ones_are_said(tmp_path: Path) -> None:
    add_token("alice", "chat", home=tmp_path)
    with pytest.raises(AlreadyExists):
        add_token("alice", "read", home=tmp_path)
    with pytest.raises(NotFound):
        remove_token("bob", tmp_path)


def test_a_file_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    own_token(tmp_path)
    (tmp_path / OWN_TOKEN).chmod(0o666)
    with pytest.raises(BadSettings):
        own_token(tmp_path)
    (tmp_path / OWN_TOKEN).chmod(0o600)
    (tmp_path / OWN_TOKEN).write_text("short\n")
    with pytest.raises(BadInput):
        own_token(tmp_path)
