"""Made-up credentials of more than forty kinds, and texts that only look like one."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Iterator

_HEX, _ALNUM, _CAPITALS = "0123456789abcdef", string.ascii_letters + string.digits, "ABCDEFGH234567"
_random = random.Random(4)


def made(count: int, of: str = _ALNUM) -> str:
    """Characters that no provider ever gave out; the digit makes it look like a token."""
    return "".join(_random.choice(of) for _ in range(count - 1)) + "7"


def pem(name: str, lines: int = 12) -> str:
    body = "\n".join(made(64) for _ in range(lines))
    return f"-----BEGIN {name}-----\n{body}\n{made(31)}=\n-----END {name}-----"


def jwt() -> str:
    parts = [
        base64.urlsafe_b64encode(t).decode().rstrip("=")
        for t in (b'{"alg":"HS256"}', b'{"sub":"1234"}')
    ]
    return ".".join((*parts, made(43)))


# the secret, and a sentence that gives it away; `{}` is where it stands
Credential = tuple[str, str]
BARE = "The deploy log says {} and then goes on."
CREDENTIALS: dict[str, Credential] = {
    "aws access key": ("AK" + "IA" + made(16, _CAPITALS), BARE),
    "aws temporary key": ("AS" + "IA" + made(16, _CAPITALS), BARE),
    "aws secret key": (made(40), "aws_secret_access_key = {}"),
    "aws session token": (made(200), "aws_session_token={}"),
    "google api key": ("AI" + "za" + made(35), BARE),
    "google oauth token": ("ya" + "29." + made(60), BARE),
    "google refresh token": ("1/" + "/0" + made(60), BARE),
    "google client secret": ("GOC" + "SPX-" + made(28), BARE),
    "azure storage": (
        made(86) + "==",
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};",
    ),
    "azure bus": (made(43) + "=", "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey={}"),
    "azure client secret": ("abc8" + "Q~" + made(34), BARE),
    "azure signed url": (made(43) + "%3D", "https://x.blob.example/c?sv=2024&sig={}&se=1"),
    "amazon signed url": (made(64, _HEX), "https://b.example/o?X-Amz-Date=1&X-Amz-Signature={}"),
    "digitalocean token": ("dop" + "_v1_" + made(64, _HEX), BARE),
    "github token": ("gh" + "p_" + made(36), BARE),
    "github app token": (
        "gh" + "s_" + made(36),
        "git clone https://x-access-token:{}@github.com/a/b",
    ),
    "github fine token": ("github" + "_pat_" + made(22) + "_" + made(59), BARE),
    "gitlab token": ("gl" + "pat-" + made(20), BARE),
    "gitlab runner token": ("gl" + "rt-" + made(20), BARE),
    "atlassian token": ("ATA" + "TT3x" + made(60), BARE),
    "npm token": ("npm" + "_" + made(36), BARE),
    "npmrc": (made(36), "//registry.example/:_authToken={}"),
    "pypi token": ("pypi-" + "AgEIcHlwaS5vcmc" + made(80), BARE),
    "rubygems key": ("ruby" + "gems_" + made(48, _HEX), BARE),
    "docker token": ("dckr" + "_pat_" + made(27), BARE),
    "anthropic key": ("sk-" + "ant-api03-" + made(80), BARE),
    "openai key": ("sk-" + "proj-" + made(60), BARE),
    "old openai key": ("sk" + "-" + made(48), BARE),
    "hugging face token": ("hf" + "_" + made(34), BARE),
    "groq key": ("gs" + "k_" + made(52), BARE),
    "slack token": ("xo" + "xb-1234567890-1234567890123-" + made(24), BARE),
    "slack app token": ("xa" + "pp-1-A0123-456-" + made(40), BARE),
    "slack webhook": (f"T{made(8)}/B{made(8)}/{made(24)}", "https://hooks.slack.com/services/{}"),
    "discord webhook": (f"{10**17}/{made(68)}", "https://discord.com/api/webhooks/{}"),
    "discord token": (f"M{made(23)}.{made(6)}.{made(27)}", BARE),
    "telegram token": ("123456789:" + "AA" + made(33), BARE),
    "sendgrid key": (f"SG.{made(22)}.{made(43)}", BARE),
    "twilio key": ("S" + "K" + made(32, _HEX), BARE),
    "mailgun key": ("key" + "-" + made(32, _HEX), BARE),
    "mailchimp key": (made(32, _HEX) + "-us12", BARE),
    "stripe key": ("sk" + "_live_" + made(24), BARE),
    "stripe webhook": ("wh" + "sec_" + made(32), BARE),
    "shopify token": ("shp" + "at_" + made(32, _HEX), BARE),
    "square token": ("sq0" + "atp-" + made(22), BARE),
    "databricks token": ("da" + "pi" + made(32, _HEX), BARE),
    "vault token": ("hv" + "s." + made(90), BARE),
    "terraform token": (f"{made(14)}.atlasv1.{made(67)}", BARE),
    "grafana token": ("gl" + "sa_" + made(32) + "_" + made(8, _HEX), BARE),
    "new relic key": ("NR" + "AK-" + made(27), BARE),
    "sentry token": ("sn" + "trys_" + made(90), BARE),
    "postman key": (f"PM{'AK'}-{made(24, _HEX)}-{made(34, _HEX)}", BARE),
    "linear key": ("lin" + "_api_" + made(40), BARE),
    "figma token": ("fi" + "gd_" + made(40), BARE),
    "notion token": ("nt" + "n_" + made(46), BARE),
    "airtable token": (f"pat{made(14)}.{made(64, _HEX)}", BARE),
    "planetscale token": ("pscale" + "_tkn_" + made(43), BARE),
    "web token": (jwt(), BARE),
    "rsa key": (pem("RSA PRIVATE KEY"), "{}"),
    "ssh key": (pem("OPENSSH PRIVATE KEY"), "{}"),
    "plain key": (pem("PRIVATE KEY"), "{}"),
    "pgp key": (pem("PGP PRIVATE KEY BLOCK"), "{}"),
    "key in json": (
        made(64),
        '"private_key": "-----BEGIN PRIVATE KEY-----\\n{}\\n' + made(64) + '\\n"',
    ),
    "age key": ("AGE-SECRET" + "-KEY-1" + made(58, _CAPITALS), BARE),
    "wireguard": (made(43) + "=", "[Interface]\nPrivateKey = {}\n"),
    "postgres url": ("s3cr3t-horse", "postgresql://app:{}@db.example:5432/app"),
    "mongo url": ("correct-battery", "mongodb+srv://root:{}@cluster.example/?w=1"),
    "redis url": ("hunter2hunter2", "redis://:{}@cache.example:6379/0"),
    "proxy url": ("letmein", "https_proxy=http://me:{}@proxy.example:3128"),
    "odbc": ("Tr0ub4dor-3", "Server=db;Database=x;User Id=sa;Password={};Encrypt=yes"),
    "bearer header": (made(40), "curl -H 'Authorization: Bearer {}' https://api.example"),
    "basic header": (base64.b64encode(b"me:pass word").decode(), "Authorization: Basic {}"),
    "token header": (made(40, _HEX), "Authorization: token {}"),
    "key header": (made(32, _HEX), "x-api-key: {}"),
    "cookie": (made(40), "Cookie: session={}; theme=dark"),
    "netrc": ("sesame-opens", "machine git.example\n  login me\n  password {}\n"),
    "netrc in a line": ("sesame-opens", "machine git.example login me password {}"),
    "curl user": ("wachtwoord", "curl -u admin:{} https://x.example"),
    "command option": ("wachtwoord", "mysqldump --password={} app"),
    "environment": ("opensesame", "export DB_PASSWORD={}"),
    "environment key": (made(32, _HEX), "DD_API_KEY={}"),
    "django": (made(50), "SECRET_KEY = '{}'"),
    "json": ("correct horse battery", '{"user": "me", "password": "{}"}'.replace("{}", "\x00")),
    "escaped json": ("correct horse battery", '"{\\"password\\": \\"\x00\\"}"'),
    "yaml": (made(24), "  client_secret: {}"),
    "shadow": ("$6$" + made(8) + "$" + made(86), "root:{}:19000:0:99999:7:::"),
}
LOOK_ALIKES = [
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "id 550e8400-e29b-41d4-a716-446655440000 and 019a8b1c2d3e7f4a8b1c2d3e7f4a8b1c",
    "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 8).decode(),
    '"integrity": "sha512-' + base64.b64encode(bytes(range(64))).decode() + '"',
    "The password is required, and the token expires. A secret: nobody knows.",
    "def login(user: str, password: str, token: str | None = None) -> Session:",
    'password = getpass.getpass("Password: ")',
    'api_key = os.environ["API_KEY"]',
    "token = tokens[0]; token = next(stream); secret = settings.SECRET_KEY",
    'curl -H "Authorization: Bearer $TOKEN" and Authorization: Bearer <your-token>',
    "export PASSWORD=${VAULT_PASSWORD} TOKEN=$(cat token) API_KEY=<key>",
    "git@github.com:acme/rocket.git https://github.com/acme/rocket.git http://localhost:8080/a@b",
    "https://example.com:443/path?page=2&sort=asc mailto:me@example.com",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END CERTIFICATE-----",
    "look for '-----BEGIN RSA PRIVATE KEY-----' in the files",
    "sk-learn, task-force, disk-usage, ghp_ is the prefix, npm_config_registry, hf_hub_download",
    "tokens: 1234 · total_tokens=5678 · max_tokens: 4096 · tokenizer=cl100k_base",
    "Bearer authentication is used; basic authorization: see chapter 3",
    "keyboard-interactive key-value pair, key=value, sort key: name, primary key: id",
    "for pat in patterns: pass",
    "src/auth/token_store.py:12: class TokenStore: pass",
    "docker run -u 1000:1000 -p 8080:80 image",
    "Cookie: a small cake. Set-Cookie is a header.",
    "passed=12 failed=3 bypass: yes, compass=north",
]


def _sentences() -> Iterator[tuple[str, str, str]]:
    for name, (secret, sentence) in CREDENTIALS.items():
        filled = (
            sentence.replace("{}", secret) if "{}" in sentence else sentence.replace("\x00", secret)
        )
        yield name, secret, filled


SENTENCES = tuple(_sentences())


def left_of(secret: str, text: str) -> list[str]:
    """The lines of a secret, or half of it, that can still be read."""
    lines = [line for line in secret.splitlines() if not line.startswith("-----")]
    return [line for line in lines if line[: max(4, len(line) // 2)] in text or line[-8:] in text]
