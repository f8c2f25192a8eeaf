"""Prefixes of the lines that code writes into a snapshot, so that code can recognise them.

A line with one of these prefixes is parsed into the fact it was made from; other lines are prose.
"""

from __future__ import annotations

import re

ROOT = "Root: "
NAMES = "Names in use: "
REPORT = "Last report: "
COMMANDS = "Commands: "
LATEST = "Latest: "
QUESTION = "Asked, not answered: "
QUOTED = re.compile(r"Quoted from `([^`\n]{1,120})`:")
FAILED = re.compile(r"FAILED (.{1,200}?) → (.{0,400})")


def quotation_heading(source: str) -> str:
    return f"Quoted from `{source}`:"


def failure_line(subject: str, line: str) -> str:
    return f"FAILED {subject} → {line}"
