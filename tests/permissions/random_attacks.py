"""Random lines in which something hostile hides: programs, options, payloads, quoting, wrappers,
global options and compound syntax, put together from a seed, with random rules and a mode.

`touch`, `git push` and `npm install` are denied, so nothing that is allowed may do them, change a
protected file, write outside the folder or print a secret.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from recollect.permissions.command_rules import CommandRules, PermissionMode, parse_rules

_HARM = ("touch marker", "touch marker", "git push", "cat .env", "cp notes.md AGENTS.md", "./runme")
_PAYLOADS: dict[str, tuple[str, ...]] = {
    "sed": ("1e touch marker", "-e1e touch marker", "w marker", "-fevil.sed", "-i.marker",
            "--expression=1e touch marker", "s/x/touch marker/e", "r .env", ":a 1e touch marker"),
    "git grep": ("-Otouch marker;:", "--open-files-in-pager=touch marker;:"),
    "git log": ("--output=marker", "--output", "marker"),
    "git diff": ("--output=marker", "--no-index", ".env", "/dev/null", "HEAD~1"),
    "git fetch": ("--upload-pack=touch marker;git-upload-pack", "."),
    "git ls-remote": ("--exec=touch marker;git-upload-pack", "."),
    "git": ("push", "p", "sh", "-P", "-p", "-C", ".", "-c", "alias.q=push", "q", "config", "a.b",
            "--git-dir=infected/.git", "--work-tree=.", "status", "mv", "notes.md", "AGENTS.md",
            "commit", "--allow-empty", "-m", "-F", ".env", "--no-pager", "stash", "clean", "-fdx"),
    "rg": ("--pre=./runme", "--pre", "./runme", "x", ".env", "--hidden"),
    "tree": ("-o", "marker", "-omarker", "-R", "--fromfile", ".env"),
    "fd": ("-x", "touch", "marker", "-xtouch", "--exec=touch", "-X"),
    "find": (".", "-exec", "touch", "marker", ";", "+", "{}", "-fprint", "-delete", "-name", ".e*"),
    "sort": ("-o", "marker", "-omarker", "--output=marker", "--outp=marker", "-T"),
    "uniq": ("a.txt", "marker", "-f", "1"),
    "date": ("010100002020", "-s", "2020-01-01", "--set=2020-01-01", "-f", ".env"),
    "awk": ('BEGIN { system("touch marker") }', "-f", "evil.awk", 'BEGIN{print >"marker"}', "1"),
    "tar": ("cf", "x.tar", "a.txt", "-I", "./runme", "--checkpoint=1",
            "--checkpoint-action=exec=./runme", "xf", "t.tar", "--to-command=./runme"),
    "test": ("-v", "PIPESTATUS[$(touch marker)]", "-a", "-n", "x", "!", "-f"),
    "cat": (".env", ".e*", "/proc//self/environ", "../.ssh/id_rsa", "-n", "./.env", "~/.ssh/*"),
    "grep": ("KEY", ".env", "-c", "--include=.e*", "-f", "a.txt"),
    "cp": ("-r", "evil/.", "evil/./", ".", "-T", "-t", "notes.md", "AGENTS.md", "../outside", "*"),
    "mv": ("notes.md", "AGENTS.md", "evil/AGENTS.md", ".", "..", "-t", ".env", "x"),
    "rm": ("-rf", ".env", "../outside", "CLAUDE.md", ".git/hooks", "C*.md", "x"),
    "tee": ("AGENTS.md", "../outside/x", "-a", "marker.txt", "x"),
    "echo": ("x", "$(touch marker)", "`touch marker`", "${x:-$(touch marker)}", "$((1))", "$x"),
    "printf": ("-v", "PIPESTATUS[$(touch marker)]", "%s", "x", "-vPATH"),
    "curl": ("-s", "file:///mnt/trap/home/work/.env", "-omarker", "-K", "curl.conf"),
    "jq": ("-R", ".", ".env", "-n", "--rawfile", "x", "$x"),
    "head": ("-n1", ".env", ".e*", "a.txt"), "wc": ("--files0-from=.env", "-l", "a.txt"),
    "touch": ("marker",), "ls": ("-la", "~/.ssh", "."), "cd": ("..", "infected", "sub", ".git"),
    "file": ("-f", ".env", "a.txt"), "diff": ("a.txt", ".env", "--to-file=.env"),
    "ln": ("-s", "..", "up", ".env", "x.txt"), "chmod": ("777", ".env", "+x", "a.txt"),
    "npm": ("--silent", "install", "./evilpkg", "test", "--script-shell=./runme", "-w", "i"),
}  # fmt: skip
_DECOYS = ("--", "-", "-e", "-n", "-I", "-P", "-g", "-E", "-A", "1", "-t", "-k", "a.txt", "b.txt",
           "x", "--regexp", "p", "-m", "--help", "-f", "-u", "-q", "--color=never")  # fmt: skip
_WRAPPERS = (
    "env {}", "env X=1 {}", "timeout 5 {}", "nice {}", "nice -n 5 {}", "nohup {}", "time {}",
    "command {}", "X=1 {}", "PYTHONPATH=. {}", "stdbuf -oL {}", "xargs {} < list.txt",
    "echo x | xargs {}", "find a.txt -exec {} ';'", "find a.txt -exec {} {{}} +", "! {}",
    "({})", "{{ {}; }}", "if true; then {}; fi", "for x in 1 -o; do {}; done", "{} | cat",
    "while {}; do break; done", "echo $({})", "echo `{}`", "cat <({})", "cd . && {}", "{} &",
    "case x in x) {};; esac", "{} 2>&1 | tail -5", "true; {}", "false || {}", "# a\n{}",
    "cat <<EOF\n$({})\nEOF", "cat <<'EOF'\n$({})\nEOF", "x=$({})", "{} > /dev/null", "{} < a.txt",
    "exec {}", "setsid -w {}", "[[ -f a.txt ]] && {}", "echo x \\\n; {}", "x=1; {}",
    "GIT_PAGER=cat {}", "echo ${{x:-$({})}}", "until {}; do break; done", "{} > out.txt",
)  # fmt: skip
_MODES: tuple[PermissionMode, ...] = ("plan", "ask", "edit", "free", "free", "free")
_DENY = ("touch *", "git push *", "npm install *", "./runme *", "runme *")


class RandomAttack(NamedTuple):
    line: str
    rules: CommandRules
    mode: PermissionMode


def _quote(chance: random.Random, word: str) -> str:
    """The word as one of the ways to write it, now and then none that keeps its value."""
    how = chance.random()
    if how < 0.6:
        plain = " " not in word or word[0] in "$`"
        return word if plain and not set(word) & set(";'\"<>") else f"'{word}'"
    if how < 0.72:
        return f'"{word}"'
    if how < 0.8:
        return f"'{word}'"
    if how < 0.86 and word:
        at = chance.randrange(len(word))
        return word[:at] + "\\" + word[at:]
    if how < 0.9 and word:
        at = chance.randrange(len(word))
        return f"'{word[:at]}'\"{word[at:]}\""
    if how < 0.93:
        return "$'" + "".join(f"\\x{ord(letter):02x}" for letter in word) + "'"
    if how < 0.96:
        return f"{{{word},{chance.choice(_DECOYS)}}}"
    return f"${{x:-{word}}}"


def _command(chance: random.Random) -> tuple[str, str]:
    """One command, and the program it names."""
    program = chance.choice(list(_PAYLOADS))
    words = [chance.choice(_PAYLOADS[program]) for _ in range(chance.randrange(1, 4))]
    for _ in range(chance.randrange(4)):
        words.insert(chance.randrange(len(words) + 1), chance.choice(_DECOYS))
    written = [_quote(chance, word) for word in words]
    name = program if chance.random() < 0.9 else f"/usr/bin/{program}"
    return " ".join([name, *written]), program


def make_attack(seed: int) -> RandomAttack:
    chance = random.Random(seed)
    texts, programs = [], []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        text, program = _command(chance) if chance.random() < 0.9 else (chance.choice(_HARM), "x")
        for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
            text = chance.choice(_WRAPPERS).format(text)
        texts.append(text)
        programs.append(program)
    line = chance.choice(("; ", " && ", " | ", "\n", " || ", " & ")).join(texts)
    mode = chance.choice(_MODES)
    allow = [f"{program} *" for program in programs if program not in ("x", "touch")]
    allow += [f"{name} *" for name in ("echo", "cat", "true", "tail", "env", "xargs", "find", "x")]
    return RandomAttack(line, parse_rules(allow=tuple(allow), deny=_DENY, mode=mode), mode)
