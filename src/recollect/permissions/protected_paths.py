"""Files that are protected from commands and tools, recognized by the words that name them.

Configuration decides what runs later: settings, memory files, hooks, start-up files. Secrets may
not even be read. Words are compared as text; links are not resolved here. Pure and linear.
"""

from __future__ import annotations

import re

_CONFIG_LIST = (
    ".bash_aliases .bash_login .bash_logout .bash_profile .bashrc .claude .config .cshrc .curlrc"
    " .emacs .emacs.d .envrc .exrc .gdbinit .gemini .git .gitattributes .gitconfig .gitmodules .hg"
    " .husky .idea .inputrc .kshrc .lldbinit .local .login .mailcap .npmrc .nvmrc .pam_environment"
    " .pdbrc .pre-commit-config.yaml .profile .pypirc .pythonrc .recollect .rprofile .screenrc"
    " .svn .tcshrc .tmux.conf .vim .vimrc .vscode .wgetrc .xinitrc .xprofile .yarnrc .yarnrc.yml"
    " .zlogin .zlogout .zprofile .zshenv .zshrc agents.md authorized_keys claude.md cron.d crontab"
    " gemini.md memory.md recollect.toml settings.toml sitecustomize.py usercustomize.py"
)
_CONFIG_NAMES = frozenset(_CONFIG_LIST.split())
_PRIVATE_LIST = (
    ".aws .azure .docker .env .gnupg .kube .netrc .password-store .pgpass .ssh credentials.json"
    " id_ed25519 id_rsa shadow"
)
_SECRET_NAMES = frozenset(_PRIVATE_LIST.split())
_SECRET_DEVICES = re.compile(r"/proc/[^/]+/(environ|mem|fd|cwd|root)|/dev/(tcp|udp)/")
_PATH_SEPARATORS = re.compile(r"[/=:,@]+")


def _names_any(word: str, known: frozenset[str]) -> bool:
    lowered = word.lower()
    if any(part in known for part in _PATH_SEPARATORS.split(lowered)):
        return True
    # `-o.bashrc`: the value is in the option's own word
    return lowered.startswith("-") and any(
        name in lowered for name in known if name.startswith(".")
    )


def names_secret(word: str) -> bool:
    return _names_any(word, _SECRET_NAMES) or _SECRET_DEVICES.search(word) is not None


def names_config(word: str) -> bool:
    """Whether the word names settings, memory, hooks or a start-up file, or a folder of them."""
    return _names_any(word, _CONFIG_NAMES) or word.lower().endswith(".pth")


def leaves_folder(word: str, root: str = "") -> bool:
    """Whether the word, as a path, begins or leads outside the working folder."""
    path = word.rpartition("=")[2] if word.startswith("-") else word
    if root and (path == root or path.startswith(root.rstrip("/") + "/")):
        path = path[len(root.rstrip("/")) + 1 :]
    # an option's value can be glued to its letter: `-t/etc`, `-t../x`
    glued = word.startswith("-") and ("/" in word.partition("=")[0])
    return path.startswith(("/", "~")) or ".." in path.split("/") or glued
