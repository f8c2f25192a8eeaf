"""What stands before a command: options that are passed on to it or refused, and bare prompts.

An option before a command is the command's own if the command has one of that name, such as
`--store`; any other is refused with the right order. A quoted sentence instead of a command is a
prompt for the agent. A single word never is: it is a mistyped command.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from shlex import join, quote
from typing import NoReturn

import click
from click.core import ParameterSource

from recollect.cli.options import looks_like_id


def pass_options_on(
    group: click.Group, ctx: click.Context, name: str, command: click.Command
) -> None:
    """Make the options given before the command its defaults; `UsageError` if it has no such."""
    defaults = {}
    for option in _given(group, ctx):
        theirs = _same_option(option, command)
        if theirs is None or theirs.name is None or option.name is None:
            _refuse(ctx, option, name)
        defaults[theirs.name] = ctx.params[option.name]
    ctx.default_map = {name: defaults}


def _given(group: click.Group, ctx: click.Context) -> list[click.Option]:
    return [
        param
        for param in group.params
        if isinstance(param, click.Option)
        and param.name is not None
        and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]


def _same_option(option: click.Option, command: click.Command) -> click.Option | None:
    long = {each for each in option.opts if each.startswith("--")}
    options = (param for param in command.params if isinstance(param, click.Option))
    return next((each for each in options if long & set(each.opts)), None)


def _refuse(ctx: click.Context, option: click.Option, name: str) -> NoReturn:
    label = _label(option)
    given = label if option.is_flag else f"{label} {option.metavar or 'VALUE'}"
    order = "recollect -p TEXT" if label == "-p" else f"recollect -p TEXT {given}"
    instead = f", or run a prompt instead of a command: `{order}`" if label != "--store" else ""
    raise click.UsageError(f"`recollect {name}` has no option {label}; leave it out{instead}.", ctx)


def _options(command: click.Command) -> Iterable[click.Option]:
    return (param for param in command.params if isinstance(param, click.Option))


def _label(option: click.Option) -> str:
    return min(option.opts, key=len)


def refuse_options_alone(ctx: click.Context) -> None:
    """Options without a prompt and without a command: say what is missing."""
    assert isinstance(ctx.command, click.Group)
    if given := _given(ctx.command, ctx):
        labels = ", ".join(map(_label, given))
        raise click.UsageError(f"A prompt or a command is missing beside {labels}.", ctx)


def explain_order(
    group: click.Group, ctx: click.Context, error: click.NoSuchOption, args: list[str]
) -> click.UsageError:
    """If the option is one of a command that follows it, name the order."""
    for position, word in enumerate(args):
        command = group.get_command(ctx, word)
        if command is not None:
            if any(error.option_name in option.opts for option in _options(command)):
                before = [each for each in args[:position] if each.startswith("-")]
                order = join(["recollect", word, *args[position + 1 :], *before])
                return click.UsageError(
                    f"{error.option_name} goes after the command: `{order}`.", ctx
                )
            break
    return error


def _refuse_option_as_prompt(group: click.Group, ctx: click.Context, prompt: str) -> None:
    """Whoever writes `-p --help` forgot the prompt; running it would cost money."""
    if prompt in ctx.help_option_names:
        ctx.fail("-p needs a prompt; `recollect --help` shows the help.")
    commands = (group.get_command(ctx, name) for name in group.list_commands(ctx))
    known = (option for each in (group, *commands) if each for option in _options(each))
    if any(prompt in (*option.opts, *option.secondary_opts) for option in known):
        ctx.fail(f"-p needs a prompt, and {prompt} is an option: `recollect -p TEXT` comes first.")


def with_bare_prompt(
    group: click.Group, ctx: click.Context, args: list[str], commands: Container[str]
) -> list[str]:
    """The arguments with `-p` before a prompt that stands where a command should."""
    if ctx.resilient_parsing:
        return args
    given, rest, _ = group.make_parser(ctx).parse_args(list(args))
    prompt = given.get("prompt")
    if isinstance(prompt, str) and prompt.startswith("-"):
        _refuse_option_as_prompt(group, ctx, prompt)
    words = rest[: next((n for n, word in enumerate(rest) if word.startswith("-")), len(rest))]
    if not words or words[0] in commands:
        return args
    before, after = args[: len(args) - len(rest)], rest[len(words) :]
    prompt = " ".join(words)
    if len(prompt.split()) == 1 or _looks_like_a_command(words, group, ctx):
        near = _near(words[0], group, ctx, 0.6)
        hint = f" Did you mean {near[0]!r}?" if near else " `recollect --help` lists the commands."
        run = f" To run the agent, type: recollect -p {quote(prompt)}"
        ctx.fail(f"There is no command {words[0]!r}.{hint}{run if len(words) > 1 else ''}")
    return [*(word for word in before if word != "--"), "-p", prompt, *after]


def _looks_like_a_command(words: list[str], group: click.Group, ctx: click.Context) -> bool:
    """Whether this may be a mistyped command with its arguments rather than a sentence."""
    if any(character.isspace() for character in words[0]):
        return False
    if len(words) == 2:
        return True  # such as `delete everything`
    near = any(_near(word, group, ctx, 0.75) for word in words[:2])
    return near or any(map(looks_like_id, words))


def _near(word: str, group: click.Group, ctx: click.Context, cutoff: float) -> list[str]:
    # late: only a mistyped command needs it
    from difflib import get_close_matches

    return get_close_matches(word, group.list_commands(ctx), n=1, cutoff=cutoff)
