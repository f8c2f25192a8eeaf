"""Ways out of a root, and files that hang, to be tried on whatever opens files."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

SECRET = b"the secret"


class World:
    """A root, a folder beside it with a secret, and what lies around."""

    def __init__(self, base: Path) -> None:
        self.base, self.root, self.outside = base, base / "root", base / "outside"
        (self.root / "sub" / "deep").mkdir(parents=True)
        self.outside.mkdir()
        (self.base / "root-twin").mkdir()
        (self.base / "root-twin" / "secret").write_bytes(SECRET)
        (self.root / "inside.txt").write_bytes(b"inside")
        (self.outside / "secret").write_bytes(SECRET)

    def link(self, name: str, target: str | Path) -> str:
        (self.root / name).symlink_to(target)
        return name

    def foreign(self) -> dict[str, bytes]:
        """All that is beside the root, to see that nothing of it changed."""
        places = (self.outside, self.base / "root-twin")
        files = [f for place in places for f in place.rglob("*")]
        return {str(f): f.read_bytes() if f.is_file() else b"" for f in files}


def chain(world: World) -> str:
    world.link("one", world.outside)
    world.link("two", "one")
    return world.link("three", "two") + "/secret"


def circle(world: World) -> str:
    world.link("a", "b")
    return world.link("b", "a")


def endless(world: World) -> str:
    for number in range(60):
        world.link(f"l{number}", f"l{number + 1}")
    (world.root / "l60").write_bytes(b"too far")
    return "l0"


def fifo(world: World) -> str:
    os.mkfifo(world.root / "fifo")
    return "fifo"


def linked_fifo(world: World) -> str:
    os.mkfifo(world.root / "fifo")
    return world.link("to-fifo", "fifo")


def listening(world: World) -> str:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(world.root)  # a socket's name may only be short
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
    return "socket"


def nested(world: World) -> str:
    world.link("sub/deep/up", "../../../outside")
    return "sub/deep/up/secret"


def through_parent(world: World) -> str:
    world.link("sub/back", "..")
    return "sub/back/../outside/secret"


def to_a_link(world: World) -> str:
    (world.outside / "back").symlink_to("secret")
    return world.link("l", world.outside / "back")


def in_and_out(world: World) -> str:
    (world.outside / "in").symlink_to(world.root)
    return world.link("l", world.outside) + "/in/../outside/secret"


def from_the_working_folder(world: World) -> str:
    steps = os.path.relpath(world.outside / "secret")
    return world.link("l", "/proc/self/cwd") + "/" + steps


# What a plain `open` would reach: the secret, or something that hangs or is not ours.
REACHING: dict[str, Callable[[World], str]] = {
    "two dots": lambda w: "../outside/secret",
    "two dots deeper": lambda w: "sub/deep/../../../outside/secret",
    "two dots after a double slash": lambda w: "sub//..//../outside/secret",
    "two dots after single dots": lambda w: "./././../outside/secret",
    "absolute": lambda w: str(w.outside / "secret"),
    "absolute through the root": lambda w: f"{w.root}/../outside/secret",
    "a folder that begins like the root": lambda w: str(w.base / "root-twin" / "secret"),
    "a sibling that begins like the root": lambda w: "../root-twin/secret",
    "many slashes": lambda w: "//" + str(w.outside / "secret"),
    "many slashes before it": lambda w: "////" + str(w.outside / "secret"),
    "an absolute link to the file": lambda w: w.link("l", w.outside / "secret"),
    "a relative link to the file": lambda w: w.link("l", "../outside/secret"),
    "a link to the folder": lambda w: w.link("l", w.outside) + "/secret",
    "a relative link to the folder": lambda w: w.link("l", "../outside") + "/secret",
    "a chain of links": chain,
    "a link deep in the tree": nested,
    "a link up, then two dots": through_parent,
    "a link to the parent of the root": lambda w: w.link("l", "..") + "/outside/secret",
    "a link to /": lambda w: w.link("l", "/") + f"{w.outside}/secret",
    "a link whose target goes in and out": lambda w: w.link(
        "l", f"{w.root}/sub/../../outside/secret"
    ),
    "a link to a link outside": to_a_link,
    "a link out and back in and out": in_and_out,
    "a link with slashes at its end": lambda w: w.link("l", f"{w.outside}///") + "/secret",
    "the process's own root": lambda w: f"/proc/self/root{w.outside}/secret",
    "a link to the process's root": lambda w: (
        w.link("l", "/proc/self/root") + f"{w.outside}/secret"
    ),
    "the process's folder": from_the_working_folder,
}


# What has nothing to give, and must say so at once.
FUTILE: dict[str, Callable[[World], str]] = {
    "a FIFO": fifo,
    "a link to a FIFO": linked_fifo,
    "a socket": listening,
    "endless zeros": lambda w: "/dev/zero",
    "a link to endless zeros": lambda w: w.link("l", "/dev/zero"),
    "a link to the terminal": lambda w: w.link("l", "/dev/tty"),
    "a link to standard input": lambda w: w.link("l", "/dev/stdin"),
    "the process's environment": lambda w: "/proc/self/environ",
    "a link to the process's environment": lambda w: w.link("l", "/proc/self/environ"),
    "a link to the process's memory": lambda w: w.link("l", "/proc/self/mem"),
    "a descriptor": lambda w: w.link("l", "/proc/self/fd/0"),
    "a link to the kernel's messages": lambda w: w.link("l", "/proc/kmsg"),
    "a dangling link": lambda w: w.link("l", w.outside / "nothing"),
    "a dangling link inside": lambda w: w.link("l", "nothing"),
    "a link to itself": lambda w: w.link("l", "l"),
    "links in a circle": circle,
    "sixty links": endless,
    "a home folder": lambda w: "~/.ssh/id_rsa",
    "another's home folder": lambda w: "~root/.profile",
    "a NUL": lambda w: "inside.txt\0.png",
    "nothing": lambda w: "",
    "a lone surrogate": lambda w: "\ud800",
    "a very long name": lambda w: "n" * 300,
    "a very long path": lambda w: "d/" * 5_000 + "f",
    "very many steps": lambda w: "sub/../" * 580 + "../outside/secret",
    "a slash after a file": lambda w: "inside.txt/",
    "a dot after a file": lambda w: "inside.txt/.",
    "two dots after a file": lambda w: "inside.txt/../inside.txt",
    "a file as a folder": lambda w: "inside.txt/secret",
    "another case": lambda w: str(w.base / "ROOT" / "inside.txt"),
    "an address": lambda w: f"file://{w.outside}/secret",
    "backslashes": lambda w: "..\\outside\\secret",
    "a folder": lambda w: "sub",
    "the root": lambda w: ".",
}
WAYS = {**REACHING, **FUTILE}
