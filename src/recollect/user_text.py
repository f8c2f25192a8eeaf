"""What the user typed, apart from what programs add to user messages.

Harnesses put notices, reminders, command echoes and whole files into user messages.
`find_user_text` returns only what the user typed, unchanged except for invisible characters;
`find_context` tells an importer which messages have nothing of that. Tags are found by plain
searching, so hostile text costs linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from recollect.entries import Context, Message, Part, Text, ToolResult
from recollect.text import clean
from recollect.toolkinds import parse_arguments

# Elements that harnesses add to a message; the user did not type their content.
_ADDED = """
system-reminder local-command-stdout local-command-stderr local-command-caveat command-name
command-message command-contents bash-stdout bash-stderr bash-input task-notification
user-prompt-submit-hook environment_context environment_details user_instructions ide_opened_file
ide_selection ide_diagnostics session_context hook_context
"""
_ADDED_TAG = re.compile(rf"<(/?)({'|'.join(_ADDED.split())})(?:\s[^<>]{{0,200}})?>", re.I | re.A)
_COMMAND = re.compile(r"<command-name>\s*([^<\s]{1,80})\s*</command-name>")
_NOTICES = (
    "[Request interrupted by user",
    "Caveat: The messages below were generated",
    "This session is being continued from a previous conversation",
    "This is the Gemini CLI. We are setting up the context",
    "Got it. Thanks for the context",
    "Base directory for this skill:",
    "Please continue the conversation from where we left it off",
    "# AGENTS.md instructions for ",
    "[System:",
    "System: Please continue.",
    "<task-notification>",
    "<state_snapshot>",  # some programs put a summary into a message
)
# How other programs' environment blocks begin; ours takes their place when a session goes on here.
_ENVIRONMENT = re.compile(
    r"\s*(?:<session_context>|This is (?:the )?[\w .-]{1,40}\. We are setting up the context)"
)
# An editor's state before a prompt: everything up to the heading is the editor's.
_EDITOR_STATE, _PROMPT_HEADING = "# Context from my IDE setup:", "\n## My request for "
_BEGINNINGS = (*_NOTICES, _EDITOR_STATE)
_POINTER = re.compile(r"(?<![\w/.-])(?:#\d{1,9}|[\w/.-]*\w[-_/.#]\w[\w/.-]*)")
_MAX_POINTERS = 40
_REPLIES = ("the user said:\n", "the user provided the following reason for the rejection:")
_QUESTION_TOOLS = ("AskUserQuestion", "ask_user", "ask_user_question", "ask_followup_question")


def find_user_text(message: Message) -> str:
    """The text that the user typed in a user message; may be empty."""
    if message.role != "user" or message.context or _is_meta(message.extra):
        return ""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    typed = strip_added_text("\n".join(texts))
    answers = [_find_answer(part) for part in message.parts if isinstance(part, ToolResult)]
    return "\n".join(text for text in (typed, *answers) if text)


def find_command(message: Message) -> str:
    """The name of a command, such as `/init`, that a program noted as the user's; may be empty."""
    if message.role != "user" or message.context != "aside":
        return ""
    texts = (part.text[:2000] for part in message.parts if isinstance(part, Text))
    found = (_COMMAND.search(text) for text in texts if text.lstrip().startswith("<command-"))
    return next((clean(command[1]) for command in found if command), "")


def find_context(parts: Sequence[Part], *, added: bool = False) -> Context:
    """What the parts of another program's user message are if the user typed nothing of them: an
    environment block, or an aside. `added`: the program itself says that it added the message."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    # what is attached, or answers a call, came from somebody
    others = len(texts) < len(parts)
    if others and (not added or any(isinstance(part, ToolResult) for part in parts)):
        return ""
    text = texts[0] if len(texts) == 1 else "\n".join(texts)
    if not added and (not text.strip() or _is_typed(text)):
        return ""
    return "initial" if begins_with_environment(text) else "aside"


def _is_typed(text: str) -> bool:
    """Whether `strip_added_text` leaves anything, which can mostly be seen from the beginning."""
    start = text.lstrip()
    if start[:1].isprintable() and start and "<" not in text and not start.startswith(_BEGINNINGS):
        return True
    return bool(strip_added_text(text))


def begins_with_environment(text: str) -> bool:
    """Whether this is a block with which another program sets up its session."""
    return _ENVIRONMENT.match(text) is not None


def find_pointers(texts: Iterable[str]) -> list[str]:
    """Words of the user that may name an issue, a ticket or a file."""
    found = (word.rstrip("./-") for text in texts for word in _POINTER.findall(text[:20_000]))
    return list(dict.fromkeys(name for name in found if len(name) > 2))[-_MAX_POINTERS:]


def strip_added_text(text: str) -> str:
    """A user message's text without a harness's additions."""
    if text.lstrip().startswith(_NOTICES):
        return ""
    if "<" in text and (command := _COMMAND.search(text[:2000])):
        _, _, words = text.partition("<command-args>")
        words = words.partition("</command-args>")[0].strip()
        return clean(f"{command[1]} {words}") if words else ""
    if text.lstrip().startswith(_EDITOR_STATE):
        text = text.partition(_PROMPT_HEADING)[2].partition(":")[2]
    if "<" in text:
        text = _strip_elements(text)
    return clean(text).strip()


def _strip_elements(text: str) -> str:
    kept: list[str] = []
    at, inside = 0, ""
    for tag in _ADDED_TAG.finditer(text):
        closing, name = tag[1] == "/", tag[2].lower()
        if not inside:
            kept.append(text[at : tag.start()])
            inside = "" if closing else name
            at = tag.end()
        elif closing and name == inside:
            inside, at = "", tag.end()
    return "".join(kept) + ("" if inside else text[at:])


def _is_meta(extra: str) -> bool:
    value = (parse_arguments(extra) if "isMeta" in extra else None) or {}
    found = [value, *value.values()]
    return any(isinstance(item, dict) and item.get("isMeta") is True for item in found)


def _find_answer(result: ToolResult) -> str:
    """The user's reason for refusing a call, or answer to a question that a tool asked."""
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    if not result.is_error:
        return clean(text).strip() if result.name in _QUESTION_TOOLS else ""
    for prefix in _REPLIES:
        _, found, reason = text.partition(prefix)
        if found and text.startswith("The user doesn't want to"):
            return clean(reason).strip()
    return ""
