"""Removes credentials from a text: `[redacted: github token]` replaces one.

It knows the formats of providers' keys and tokens, private keys, passwords in URLs and headers, and
values whose name says that they are secret. A credential is replaced only where it is complete and
stands alone, so that hashes, UUIDs, images and ordinary words stay. The time is linear: every
pattern starts where its run of characters starts, and whatever may fail to match is bounded. A
secret without a known format or name is not found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

MARK = "[redacted: "
_WORD = "A-Za-z0-9_"
_ALONE = rf"(?<![{_WORD}-])"  # the start of a run of characters
_ENDS = rf"(?![{_WORD}-])"


class _CredentialPattern(NamedTuple):
    name: str
    hints: tuple[str, ...]  # in lower case; a text without any of them has no match
    pattern: str  # the group `secret` is replaced; without one, the whole match


def _token(name: str, prefixes: str, body: str, end: str = "") -> _CredentialPattern:
    begins = "|".join(map(re.escape, prefixes.split()))
    pattern = rf"{_ALONE}(?:{begins})(?:{body}){'' if end else _ENDS}"
    return _CredentialPattern(name, tuple(prefixes.lower().split()), pattern)


def _shape(name: str, hints: str, pattern: str) -> _CredentialPattern:
    return _CredentialPattern(name, tuple(hints.split()), pattern)


# --- private keys ------------------------------------------------------------------------------

_KEY_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?"
# between two lines of a key: line ends, also escaped, line numbers, the marks of a diff
_BETWEEN = r"(?:[\s:|>+\d]|\\{1,4}[nrt]|-(?!-))"
_HEADERS = r"(?:(?:\\{1,4}[nr]|\s){1,4}[A-Z][A-Za-z-]{1,30}: [^\r\n\\]{0,200}){0,6}"
_PRIVATE_KEY = (
    rf"-----BEGIN {_KEY_NAME}-----{_HEADERS}"
    rf"(?P<secret>(?:{_BETWEEN}*+[A-Za-z0-9+/=_]{{16,}}+)++(?:{_BETWEEN}*+[A-Za-z0-9+/=]{{1,15}}+)?"
    rf"(?:{_BETWEEN}*+-----END {_KEY_NAME}-----)?)"
)

# --- values that are secret because of what precedes them -----------------------------------------

_PASSWORDS = r"pass(?:word|wd|phrase|code)|pwd"
_SECRETS = (
    r"(?:api|access|secret|private|signing|encryption|master|account|shared|auth|session)"
    r"[-_. ]?key|secret|token|credential|authkey|_auth\b"
)
# `token2`, `token_old` and `tokenValue` are such names; `tokens` and `tokenizer` are not
_NAME_GOES_ON = r"(?:[0-9]{1,3}|[-_][A-Za-z0-9_-]{0,20}|(?-i:[A-Z])[A-Za-z0-9]{0,20})?"
_IS = r"[\\\"'\]]{0,5}[ \t]{0,8}(?:=>|:=|==?|:)[ \t]{0,8}"
_QUOTE = r"\\{0,4}[\"']"
# references to a secret, placeholders, code that fetches one, and earlier redactions
_NO_VALUE = r"(?!\[redacted: |[$<{*%]|x{4}|\.\.\.|(?:os|process|env|self|settings|config)\b)"
_BARE = r"[^\s\"'\\,;&()\[\]{}<>|\x00-\x1f]"
_DIGIT_AND_LETTER = rf"(?={_BARE}{{0,64}}?[0-9])(?={_BARE}{{0,64}}?[A-Za-z])"
_WORDS_IN_QUOTES = (
    rf"(?P<q>{_QUOTE}){_NO_VALUE}"
    r"(?!(?:string|str|text|password|secret|token|required|none|null|true|false|value)\\{0,4}[\"'])"
)

_URL_PASSWORD = (
    r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"'<>\\?#]{0,100}:"
    rf"(?P<secret>{_NO_VALUE}[^\s/@\"'<>\\]{{1,200}})@"
)
_HEADER = (
    r"(?i)(?<![A-Za-z0-9])(?:proxy-)?authorization" + _IS + r"(?:\\{0,4}[\"'])?"
    r"(?:(?:bearer|basic|token|digest|negotiate|ssws|apikey|bot)[ \t]{1,4})?"
    r"(?P<secret>(?!\[redacted: |[$<{]|(?:bearer|basic)\b)[^\s\"'\\,;]{6,}+)"
)
_BEARER = (
    r"(?i)(?<![A-Za-z0-9])bearer[ \t]{1,4}"
    r"(?P<secret>(?!\[redacted: )(?=[^\s\"']{0,64}?[0-9])[A-Za-z0-9_.~+/=-]{8,}+)"
)
_COOKIE = (
    r"(?i)(?<![A-Za-z0-9-])(?:set-)?cookie: {0,4}[A-Za-z0-9_.-]{1,60}="
    r"(?P<secret>(?!\[redacted: )[^\s\"';,\\]{8,}+"
    r"(?:; {0,2}[A-Za-z0-9_.-]{1,60}=[^\s\"';,\\]{8,}+){0,20})"
)
_NETRC = (
    r"(?i)(?<![A-Za-z0-9])(?:login|user|account)[ \t]{1,8}[^\s]{1,100}\s{1,8}password[ \t]{1,8}"
    r"(?P<secret>(?!\[redacted: )[^\s\"']{3,}+)"
)
_USER_OPTION = (
    r"(?<![A-Za-z0-9-])(?:-u|--user|--proxy-user)[ =]{1,2}(?:\\{0,4}[\"'])?[A-Za-z0-9_.@+-]{1,100}:"
    rf"(?P<secret>{_NO_VALUE}(?![0-9]{{1,9}}\b)[^\s\"'\\/:]{{4,}}+)(?![/:])"
)
_PASSWORD_OPTION = (
    r"(?<![A-Za-z0-9-])(?:--pass(?:word|phrase)|sshpass -p)[ \t=]{1,2}(?:\\{0,4}[\"'])?"
    rf"(?P<secret>{_NO_VALUE}[^\s\"'\\-][^\s\"'\\]{{3,}}+)"
)
_NAMED_IN_QUOTES = (
    rf"(?i)(?:{_PASSWORDS}|client[-_]?secret|secret[-_]?key){_NAME_GOES_ON}{_IS}"
    rf"{_WORDS_IN_QUOTES}(?P<secret>[^\"'\\\r\n]{{4,200}})(?P=q)"
)
_NAMED_IN_CAPITALS = (
    r"(?:PASS(?:WORD|WD|PHRASE)?|PWD|SECRET|TOKEN|(?:API|ACCESS|PRIVATE|SIGNING|SECRET)_?KEY)"
    rf"(?<!_PATH)(?:_[A-Z0-9]{{1,12}}){{0,2}}=(?:{_QUOTE})?"
    rf"(?P<secret>{_NO_VALUE}(?!/)(?!{_BARE}{{0,64}}\(){_BARE}{{6,}}+)"
)
_NAMED = (
    rf"(?i)(?:{_PASSWORDS}|{_SECRETS}){_NAME_GOES_ON}{_IS}(?:{_QUOTE})?"
    rf"(?P<secret>{_NO_VALUE}(?!{_BARE}{{0,64}}[(\[]){_DIGIT_AND_LETTER}{_BARE}{{8,}}+)"
)

# --- the patterns ------------------------------------------------------------------------------

# Tokens with a provider's prefix: kind, prefixes, the rest; after an open one anything may follow.
_TOKENS = r"""
aws access key | AKIA ASIA ABIA ACCA | [A-Z0-9]{16}
google api key | AIza | [\w-]{35}
google oauth token | ya29. | [\w.-]{20,}+ | open
google refresh token | 1//0 | [\w-]{30,}+
google client secret | GOCSPX- | [\w-]{28}
digitalocean token | dop_v1_ doo_v1_ dor_v1_ | [0-9a-f]{64}
heroku key | HRKU- | [\w-]{30,}+
alibaba key | LTAI | [A-Za-z0-9]{17,21}
vault token | hvs. hvb. hvr. | [\w-]{20,}+
databricks token | dapi | [0-9a-f]{32}(?:-\d)?
cloud token | pul- FlyV1 vcp_ nfp_ sbp_ rnd_ dp.pt. | [ ]?[\w.+/=,-]{28,}+ | open
cloud token | pscale_tkn_ pscale_pw_ | [ ]?[\w.+/=,-]{28,}+ | open
github token | ghp_ gho_ ghu_ ghs_ ghr_ | [A-Za-z0-9]{36,255}
github token | github_pat_ | \w{22,255}
gitlab token | glpat- gldt- glrt- glcbt- glptt- glft- glsoat- | [\w.-]{20,}+ | open
gitlab token | glimt- glagent- gloas- glffct- | [\w.-]{20,}+ | open
atlassian token | ATATT3x ATBB ATCTT3x | [\w=.-]{24,}+ | open
npm token | npm_ | [A-Za-z0-9]{36}
pypi token | pypi-AgE | [\w-]{50,}+
rubygems key | rubygems_ | [0-9a-f]{48}
crates.io token | cio | (?=[A-Za-z]{0,31}[0-9])[A-Za-z0-9]{32}
docker token | dckr_pat_ dckr_oat_ | [\w-]{20,}+
nuget key | oy2 | [a-z0-9]{43}
anthropic key | sk-ant- | [\w-]{20,}+
openai key | sk-proj- sk-svcacct- sk-admin- sk-or-v1- | [\w-]{20,}+
openai key | sk- | (?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{20,}+
hugging face token | hf_ | [A-Za-z0-9]{30,}+
model key | gsk_ xai- pplx- r8_ nvapi- fw_ csk- tgp_v1_ | (?=[\w-]{0,64}?[0-9])[\w-]{24,}+
slack token | xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxe. xapp- | [\w.-]{10,}+ | open
sendgrid key | SG. | [\w-]{22}\.[\w-]{43}
twilio key | SK | [0-9a-f]{32}
mailgun key | key- | [0-9a-f]{32}
stripe key | sk_live_ sk_test_ rk_live_ rk_test_ whsec_ | [A-Za-z0-9+/=]{16,}+ | open
square token | sq0atp- sq0csp- sq0idp- EAAAE | [\w-]{22,}+
shopify token | shpat_ shpss_ shpca_ shppa_ | [0-9a-fA-F]{32}
braintree token | access_token$production$ access_token$sandbox$ | [0-9a-z]{16}\$[0-9a-f]{32}
facebook token | EAACEdEose0cBA EAAG | [A-Za-z0-9]{30,}+
grafana token | glsa_ glc_ | [\w+/=]{30,}+ | open
new relic key | NRAK- NRII- NRJS- | [\w-]{19,}+
sentry token | sntrys_ sntryu_ | [\w+/=-]{40,}+ | open
postman key | PMAK- | [0-9a-f]{24}-[0-9a-f]{34}
notion token | ntn_ secret_ | (?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{40,}+
linear key | lin_api_ lin_oauth_ | [A-Za-z0-9]{32,}+
figma token | figd_ | [\w-]{30,}+
dropbox token | sl. | (?=[A-Za-z_-]{0,64}[0-9])[\w-]{100,}+
snyk token | snyk_uat. | [\w.-]{30,}+ | open
"""
# The order matters: patterns that know the provider come before those that know only a name.
_PATTERNS: tuple[_CredentialPattern, ...] = (
    _shape("private key", "private key", _PRIVATE_KEY),
    _shape("age key", "age-secret-key-1", rf"{_ALONE}AGE-SECRET-KEY-1[A-Z0-9]{{50,70}}{_ENDS}"),
    _shape(
        "json web token",
        "eyj",
        rf"{_ALONE}eyJ[{_WORD}-]{{8,}}+\.eyJ[{_WORD}-]{{4,}}+\.[{_WORD}-]{{8,}}+",
    ),
    *(_token(*row.split(" | ")) for row in _TOKENS.strip().splitlines()),
    _shape(
        "aws secret key",
        "aws",
        r"(?i)aws_?(?:secret_?(?:access_?)?key|session_?token)"
        rf"{_IS}(?:{_QUOTE})?(?P<secret>[A-Za-z0-9/+=]{{30,}}+)",
    ),
    _shape("azure key", "key=", r"(?i)account_?key=(?P<secret>[A-Za-z0-9+/]{40,}+={0,2})"),
    _shape(
        "azure key",
        "sharedaccesskey=",
        r"(?i)SharedAccessKey=(?P<secret>[A-Za-z0-9+/]{20,}+={0,2})",
    ),
    _shape(
        "azure secret", "q~", rf"(?<![{_WORD}~.-])[\w.~-]{{3}}\dQ~[\w.~-]{{31,34}}(?![{_WORD}~.-])"
    ),
    _shape("signed url", "sig=", r"[?&]sig=(?P<secret>[A-Za-z0-9%+/]{30,}+={0,2})"),
    _shape(
        "signed url", "signature=", r"(?i)[?&]x-(?:amz|goog)-signature=(?P<secret>[0-9a-f]{32,}+)"
    ),
    _shape(
        "terraform token",
        ".atlasv1.",
        rf"{_ALONE}[A-Za-z0-9]{{14}}\.atlasv1\.[\w-]{{60,70}}{_ENDS}",
    ),
    _shape(
        "slack webhook",
        "hooks.slack.com",
        r"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{20,}+)",
    ),
    _shape(
        "discord webhook",
        "/api/webhooks/",
        r"(?i)discord(?:app)?\.com/api/webhooks/(?P<secret>\d{10,25}/[\w-]{30,}+)",
    ),
    _shape(
        "teams webhook",
        "webhook.office.com",
        r"(?i)webhook\.office\.com/webhookb2/(?P<secret>[\w@/-]{30,}+)",
    ),
    _shape(
        "webhook", "hooks.zapier.com", r"(?i)hooks\.zapier\.com/hooks/catch/(?P<secret>[\w/-]{8,}+)"
    ),
    _shape(
        "discord token",
        ".",
        rf"(?<![{_WORD}.-])[MNO][A-Za-z0-9_-]{{23,27}}\.[\w-]{{6}}\.[\w-]{{27,40}}(?![{_WORD}.-])",
    ),
    _shape("telegram token", ":aa", r"(?<![\w:])\d{8,10}:AA[\w-]{33}(?![\w-])"),
    _shape("mailchimp key", "-us", rf"{_ALONE}[0-9a-f]{{32}}-us\d{{1,2}}{_ENDS}"),
    _shape("airtable token", "pat", rf"{_ALONE}pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}{_ENDS}"),
    _shape(
        "password hash", "$", r"(?<![\w$])\$(?:2[abxy]|5|6|y|argon2id)\$[A-Za-z0-9./$=,+]{20,}+"
    ),
    _shape("password", "://", _URL_PASSWORD),
    _shape("authorization", "authorization", _HEADER),
    _shape("bearer token", "bearer", _BEARER),
    _shape("cookie", "cookie:", _COOKIE),
    _shape("password", "password", _NETRC),
    _shape("password", "-u --user --proxy-user", _USER_OPTION),
    _shape("password", "--pass sshpass", _PASSWORD_OPTION),
    _shape("password", "pass pwd secret", _NAMED_IN_QUOTES),
    _shape("secret", "pass pwd secret token key", _NAMED_IN_CAPITALS),
    _shape("secret", "pass pwd secret token key credential auth", _NAMED),
)

_SECRET_NAME = re.compile(
    rf"(?i)(?:^|[a-z0-9_.-])(?:{_PASSWORDS}|client[-_]?secret|{_SECRETS})$|^(?:{_PASSWORDS}|{_SECRETS})$"
)


def redact(text: str) -> str:
    """The text with a marker in place of every credential."""
    lower = text.lower()
    for name, hints, pattern in _PATTERNS:
        if any(hint in lower for hint in hints):
            text = re.sub(pattern, _Replacement(name), text)  # compiled once, by `re`
    return text


class _Replacement:
    def __init__(self, name: str) -> None:
        self._mark = f"{MARK}{name}]"

    def __call__(self, found: re.Match[str]) -> str:
        if "secret" not in found.re.groupindex:
            return self._mark
        whole, begin = found[0], found.start()
        start, end = found.start("secret") - begin, found.end("secret") - begin
        return whole[:start] + self._mark + whole[end:]


def redact_json(data: bytes) -> bytes:
    """A JSON document with credentials replaced, in texts and under names such as `api_key`.

    Lines without a credential stay byte for byte as `indent=2` writes them.
    """
    value = _redacted(json.loads(data))
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


_LONE = re.compile("[\ud800-\udfff]")


def _redacted(value: Any) -> Any:
    """Change the document in place, without recursion: it may be nested deeply."""
    outer = [value]
    todo: list[Any] = [outer]
    while todo:
        holder = todo.pop()
        places: Sequence[Any] = range(len(holder)) if isinstance(holder, list) else list(holder)
        for place in places:
            item = holder[place]
            if isinstance(item, str):
                holder[place] = _text_under(place, item)
            elif isinstance(item, dict | list):
                todo.append(item)
        if isinstance(holder, dict) and any(redact(key) != key for key in holder):
            renamed = {redact(key): item for key, item in holder.items()}
            holder.clear()
            holder.update(renamed)
    return outer[0]


def _text_under(name: object, text: str) -> str:
    clean = redact(text)
    if isinstance(name, str) and MARK not in clean and _SECRET_NAME.search(name):
        return f"{MARK}secret]" if len(text) >= 4 else text
    return clean
