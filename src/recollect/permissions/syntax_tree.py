"""The second reader of a command line: tree-sitter-bash as an allow-list of node types.

`collect_spans` says where each command's words, each assignment, redirection and expansion begins
and ends in the source. The first reader must have found the same; where they differ, a line is not
understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

import tree_sitter
import tree_sitter_bash

from recollect.permissions.parsed_line import UnsupportedSyntax, word_set

Span: TypeAlias = tuple[int, int]

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
_COMMAND_NODES = word_set("command declaration_command unset_command")
_EXPANSION_NODES = word_set(
    "simple_expansion expansion command_substitution arithmetic_expansion process_substitution"
    " ansi_c_string"
)
_PIPE_STATUS = re.compile(rb"PIPESTATUS\[[0-9]\]\Z")  # the only element of an array
_REDIRECT_NODES = word_set("file_redirect herestring_redirect")
_ALLOWED_NODES = (
    _COMMAND_NODES
    | _EXPANSION_NODES
    | _REDIRECT_NODES
    | word_set(
        "program list pipeline redirected_statement subshell compound_statement negated_command"
        " for_statement while_statement if_statement elif_clause else_clause case_statement"
        " case_item do_group test_command variable_assignment variable_assignments comment"
        " command_name word number string raw_string string_content concatenation brace_expression"
        " extglob_pattern regex test_operator variable_name special_variable_name"
        " unary_expression binary_expression parenthesized_expression ternary_expression"
        " postfix_expression file_descriptor"
    )
)


@dataclass
class SourceSpans:
    """Positions in the source's bytes."""

    commands: list[tuple[Span, ...]] = field(default_factory=list)
    assignments: list[Span] = field(default_factory=list)
    targets: list[Span] = field(default_factory=list)
    loop_words: list[Span] = field(default_factory=list)
    expansions: list[Span] = field(default_factory=list)


def parse_source(source: bytes) -> tree_sitter.Node:
    return _PARSER.parse(source).root_node


def mask_here_documents(
    source: bytes, operators: list[Span], bodies: list[Span], kept: list[Span]
) -> bytes:
    """The source with `<<` as `<` and bodies blank but for their expansions, byte for byte.

    tree-sitter-bash loses words beside a here-document, and cannot read two of them in one line.
    """
    masked = bytearray(source)
    for start, end in operators:
        masked[start:end] = b"<".ljust(end - start)
    for start, end in bodies:
        masked[start:end] = re.sub(rb"[^\n]", b" ", source[start:end])
    for start, end in kept:
        masked[start:end] = source[start:end]
    return bytes(masked)


def collect_spans(root: tree_sitter.Node, here_expansions: list[Span]) -> SourceSpans:
    spans = SourceSpans()
    not_commands = {start for start, _ in here_expansions}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if not _is_allowed(node):
            raise UnsupportedSyntax(f"it has a {node.type.replace('_', ' ')}")
        if node.type in _COMMAND_NODES and node.start_byte in not_commands:
            pass  # a line of a masked here-document, of which only expansions are left
        elif node.type in _COMMAND_NODES:
            spans.commands.append(_command_spans(node))
        elif node.type == "test_command" and node.children[0].type == "[":
            spans.commands.append(tuple(_test_spans(node)))
        elif node.type == "variable_assignment" and _is_assignment(node):
            spans.assignments.append((node.start_byte, node.end_byte))
        elif node.type == "file_redirect":
            spans.targets += [_span(word) for word in node.children_by_field_name("destination")]
        elif node.type == "for_statement":
            spans.loop_words += [_span(word) for word in node.children_by_field_name("value")]
        elif node.type in _EXPANSION_NODES:
            spans.expansions.append(_span(node))
        waiting.extend(reversed(node.children))
    return spans


def _is_allowed(node: tree_sitter.Node) -> bool:
    if node.is_missing or node.is_error:
        return False
    if node.type == "subscript":
        return _PIPE_STATUS.match(node.text or b"") is not None
    return not node.is_named or node.type in _ALLOWED_NODES


def _span(node: tree_sitter.Node) -> Span:
    return node.start_byte, node.end_byte


def _is_assignment(node: tree_sitter.Node) -> bool:
    """In `export a=b` the assignment is a word of the command."""
    return node.parent is None or node.parent.type != "declaration_command"


def _command_spans(node: tree_sitter.Node) -> tuple[Span, ...]:
    others = _REDIRECT_NODES
    if node.type == "command":
        others = others | {"variable_assignment", "<<<"}
    return tuple(_span(child) for child in node.children if child.type not in others)


def _test_spans(node: tree_sitter.Node) -> list[Span]:
    found: list[Span] = []
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.type in ("test_command", "unary_expression", "binary_expression"):
            waiting.extend(reversed(one.children))
        else:
            found.append(_span(one))
    return found
