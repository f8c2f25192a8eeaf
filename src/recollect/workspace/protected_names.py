"""The one list of names that only the user writes, for file tools, the judge and the sandboxes.

A name is here if a program that the user runs for another purpose, or an agent, acts on it by
itself: it starts what the file says, or takes the file for the user's words. Code and build files
that an agent is there to write (`Makefile`, `package.json`, `conftest.py`, `eslint.config.js`) are
not here: they act when the user builds, tests or runs the project.

Names count in any folder, because every folder below can be a project of its own, and however a
filesystem lets them be spelled: in any case, with dots or blanks at the end, with characters that
are ignored, as short names of Windows. Pure and linear; links are resolved by the caller.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

_Kind: TypeAlias = Literal["file", "folder"]
_Place: TypeAlias = Literal["project", "home"]


class ProtectedName(NamedTuple):
    """One or two names of a path, in lower case; `*` stands for any text within a name."""

    path: str
    kind: _Kind = "file"  # a folder is protected with everything below it
    place: _Place = "project"  # where programs look for it
    # whether commands in a sandbox may not write it either; what a repository or an installer
    # keeps for itself (`.git`, `*.pth`) must stay writable for `git commit` and `pip install`
    in_sandbox: bool = True


_AGENT_FILES = """
agents.md agents.*.md agent.md claude.md claude.*.md gemini.md gemini.*.md memory.md qwen.md
crush.md warp.md replit.md copilot-instructions.md recollect.toml settings.toml trusted_folders.json
server-token server-tokens.json .mcp.json mcp.json
.claude.json .rules .goosehints .windsurfrules .windsurf* .cursorrules .cursor* .roorules*
.roomodes .kilocodemodes .kilocoderules* .augment-guidelines .openhands_instructions
.continuerules .continuerc.json .aider.conf.yml .aider* opencode.json opencode.jsonc crush.json
.crush.json .replit .recollectignore .geminiignore .clineignore .rooignore .aiexclude
.codeiumignore .agentignore
.github/copilot-instructions.md .github/dependabot.yml .github/dependabot.yaml
"""
_AGENT_FOLDERS = """
.recollect .claude .claude-plugin .codex .gemini .cursor .windsurf .codeium .clinerules .cline .roo
.kilocode .continue .amazonq .kiro .junie .trae .augment .factory .openhands .opencode .crush .goose
.qwen .copilot .agent .agents .ruler .vibe .kimi .iflow .codebuddy .warp .antigravity .zencoder
.tabnine .serena .pi .idx
.github/instructions .github/prompts .github/chatmodes .github/agents .github/skills .github/hooks
.gitlab/duo
"""
_EDITOR_FILES = """
*.code-workspace .exrc .vimrc .gvimrc .lvimrc .nvimrc .nvim.lua .lazy.lua .neoconf.json .emacs
.dir-locals.el .dir-locals-2.el .devcontainer.json devfile.yaml .devfile.yaml .gitpod.yml
.gitpod.dockerfile
"""
_EDITOR_FOLDERS = """
.vscode .vs .idea .zed .fleet .nova .helix .vim .nvim .emacs.d .devcontainer .theia
"""
_VERSION_CONTROL_FILES = """
.gitattributes .gitmodules .hgsub .arcconfig .pre-commit-config.yaml .pre-commit-config.yml
.pre-commit-hooks.yaml prek.toml lefthook.* lefthook-local.* .lefthook.* .lefthook-local.*
.lintstagedrc* lint-staged.config.* simple-git-hooks.* .simple-git-hooks.* .overcommit.yml
captainhook.json grumphp.yml
"""
_VERSION_CONTROL_FOLDERS = ".husky .githooks .git-hooks .lefthook .lefthook-local"
_REPOSITORIES = ".git .hg .svn .jj .sl .bzr .repo .pijul _darcs"
_CI_FILES = """
.gitlab-ci.yml .gitlab-ci.yaml .travis.yml appveyor.yml .appveyor.yml azure-pipelines.yml
azure-pipelines.yaml azure-pipelines-*.yml jenkinsfile jenkinsfile.* bitbucket-pipelines.yml
.drone.yml .drone.yaml .drone.star .drone.jsonnet .woodpecker.yml .woodpecker.yaml .cirrus.yml
.cirrus.star .build.yml cloudbuild.yaml cloudbuild.yml cloudbuild.json buildspec.yml buildspec.yaml
codefresh.yml wercker.yml .onedev-buildspec.yml codemagic.yaml bitrise.yml .bitrise.yml
.scrutinizer.yml .readthedocs.yml .readthedocs.yaml .actrc
"""
_CI_FOLDERS = """
.github/workflows .github/actions .gitea/workflows .gitea/actions .forgejo/workflows
.forgejo/actions .gitlab/ci .gitlab-ci .circleci .azure-pipelines .jenkins .woodpecker .buildkite
.semaphore .teamcity .builds .codefresh .tekton
"""
# These choose programs, or where packages come from, for whatever is run in the folder.
_PACKAGE_FILES = """
.envrc .autoenv .autoenv.zsh .autoenv_leave.zsh mise.toml mise.*.toml .mise.toml .mise*
.rtx.toml mise/config.toml .tool-versions .prototools .nvmrc rust-toolchain rust-toolchain.toml
.npmrc .yarnrc .yarnrc.* .pnpmfile.cjs .pnpmfile.mjs pnpmfile.cjs bunfig.toml .bunfig.toml .pypirc
pip.conf pip.ini uv.toml poetry.toml pdm.toml .pdm.toml .pdm-python .condarc condarc nuget.config
.bazelrc .bazelrc.* *.bazelrc .bazeliskrc .bazelversion tools/bazel .buckconfig .buckconfig.local
.pantsrc .jvmopts .sbtopts
"""
_PACKAGE_FOLDERS = ".cargo .mise .bundle .mvn .yarn/releases .yarn/plugins"
_INTERPRETER_FILES = """
.gdbinit .lldbinit .pdbrc .pdbrc.py .rprofile .renviron .irbrc .pryrc .byebugrc .rdbgrc .ghci
.iex.exs .ocamlinit .utoprc .perldb .octaverc .gnuplot .valgrindrc sitecustomize.py
usercustomize.py jupyter*_config.py jupyter*_config.json ipython_config.py
"""
_HOME_FILES = """
.bash_aliases .bash_completion .bash_login .bash_logout .bash_profile .bashrc .cshrc .kshrc .login
.logout .mkshrc .profile .shrc .tcshrc .zlogin .zlogout .zprofile .zshenv .zshrc .inputrc
.pam_environment .xinitrc .xprofile .xsession .xsessionrc .tmux.conf .screenrc .curlrc .wgetrc
.mailcap .lessfilter .gitconfig .hgrc .direnvrc .asdfrc .gemrc .terraformrc .pythonrc .pythonrc.py
.psqlrc .sqliterc .mongorc.js .mongoshrc.js authorized_keys crontab .kube/config
.docker/config.json .gradle/gradle.properties .gradle/init.gradle .gradle/init.gradle.kts
.m2/settings.xml
"""
_HOME_FOLDERS = """
.config .local .ssh .gnupg .aws .ipython .jupyter .docker/cli-plugins .gradle/init.d cron.d
launchagents launchdaemons
"""
_WRITTEN_BY_INSTALLERS = "*.pth"


def _list_names() -> Iterator[ProtectedName]:
    files, folders = (
        (_AGENT_FILES, _EDITOR_FILES, _VERSION_CONTROL_FILES, _CI_FILES, _PACKAGE_FILES),
        (_AGENT_FOLDERS, _EDITOR_FOLDERS, _VERSION_CONTROL_FOLDERS, _CI_FOLDERS, _PACKAGE_FOLDERS),
    )
    for text in (*files, _INTERPRETER_FILES):
        yield from map(ProtectedName, text.split())
    for text in folders:
        yield from (ProtectedName(path, "folder") for path in text.split())
    yield from (ProtectedName(path, "file", "home") for path in _HOME_FILES.split())
    yield from (ProtectedName(path, "folder", "home") for path in _HOME_FOLDERS.split())
    for path in _REPOSITORIES.split():
        yield ProtectedName(path, "folder", in_sandbox=False)
    yield ProtectedName(_WRITTEN_BY_INSTALLERS, in_sandbox=False)


PROTECTED_NAMES = tuple(_list_names())
_EXACT = {name.path: name for name in PROTECTED_NAMES if "*" not in name.path}
_PATTERNS = tuple(
    (*name.path.partition("*")[::2], name) for name in PROTECTED_NAMES if "*" in name.path
)
_STARTS = tuple(start for start, _, _ in _PATTERNS)
# `tools/bazel` does not make every `tools` special
_PARENTS = frozenset(
    name.path.partition("/")[0]
    for name in PROTECTED_NAMES
    if name.path.startswith(".") and "/" in name.path
) - frozenset(_EXACT)
_SHORT_NAMES = {
    re.sub(r"[^a-z0-9_-]", "", name.path.partition("/")[0].lstrip(".").partition(".")[0])[:6]: name
    for name in PROTECTED_NAMES
    if "*" not in name.path
}
_SHORT_NAME = re.compile(r"([^.~]{1,6})~[0-9]{1,6}(?:\.[^.]{0,3})?")
# Filesystems of Macs ignore these within names.
_IGNORED = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")


def find_protected(path: str) -> ProtectedName | None:
    """The protected name that a path names or lies below; None if it is not protected."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    spellings = [canonical_name(name) for name in names]
    return _find_in(spellings) or _find_in(_without_parents(spellings))


def holds_protected(path: str) -> bool:
    """Whether a path ends in a folder that can have protected names directly below it by name, as
    `.github` has `workflows`: whoever replaces the folder writes these too."""
    names = _without_parents([canonical_name(name) for name in path.split("/")])
    return bool(names) and names[-1] in _PARENTS


def makes_bare_repository(path: str) -> bool:
    """Whether a file makes git take its folder for a bare repository, whose `config` starts
    programs. Only in capitals: `head` is an ordinary name."""
    return path.rpartition("/")[2] == "HEAD"


def _find_in(names: Sequence[str]) -> ProtectedName | None:
    for number, name in enumerate(names):
        pair = f"{name}/{names[number + 1]}" if number + 1 < len(names) else ""
        for candidate in (name, pair):
            if candidate and (found := _find_name(candidate)) is not None:
                return found
    return None


def _find_name(name: str) -> ProtectedName | None:
    if (exact := _EXACT.get(name)) is not None:
        return exact
    for start, end, pattern in _PATTERNS if name.startswith(_STARTS) else ():
        long_enough = len(name) >= len(start) + len(end)
        if long_enough and name.startswith(start) and name.endswith(end):
            return pattern
    short = _SHORT_NAME.fullmatch(name)
    return _SHORT_NAMES.get(short[1]) if short is not None else None


def _without_parents(names: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for name in names:
        if name == "..":
            del kept[-1:]
        elif name not in ("", "."):
            kept.append(name)
    return kept


def canonical_name(name: str) -> str:
    """The name as a filesystem could compare it; `..` stays what it is."""
    if name in ("", ".", ".."):
        return name
    # an alternate data stream of Windows: `.git::$INDEX_ALLOCATION`
    stem = _IGNORED.sub("", name).partition(":")[0].rstrip(" .")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", stem).casefold())
