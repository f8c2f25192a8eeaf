"""The names of files and folders that hold secrets: one list for the judge of commands, the
sandboxes and the tools. Pure data."""

from __future__ import annotations

_PRIVATE_LIST = (
    ".aws .azure .docker .env .git-credentials .gnupg .htpasswd .kube .netrc .npmrc .password-store"
    " .pgpass .pypirc .ssh .vault-token credentials.json id_dsa id_ecdsa id_ed25519 id_rsa shadow"
    " gshadow .my.cnf .boto .s3cfg .envrc _netrc .dockercfg .bash_history .zsh_history"
    " .psql_history .mysql_history .python_history terraform.tfstate"
)
SECRET_NAMES = frozenset(_PRIVATE_LIST.split())
_KEY_ENDINGS = (".pem", ".p12", ".pfx", ".jks", ".kdbx", "_rsa", "_ed25519", "_ecdsa")
_SHORTEST_KEY = 4
_TEMPLATES = frozenset({"example", "sample", "template", "dist", "defaults", "schema"})


def is_secret_name(part: str) -> bool:
    """Whether a file or folder of this name, in lower case, holds secrets."""
    if part in SECRET_NAMES:
        return True
    if part.startswith((".env.", ".env-", ".env_", ".env~")):
        return part.rpartition(".")[2] not in _TEMPLATES
    return part.endswith(_KEY_ENDINGS) and len(part) > _SHORTEST_KEY


def is_secret_folder(name: str) -> bool:
    """Whether everything in a folder of this name, in lower case, is secret. `shadow` and
    `test_rsa` are folders like others."""
    return name.startswith(".") and is_secret_name(name) and not name.endswith(_KEY_ENDINGS)
