"""What every test shares: how many examples a property tries, and what the machine lacks."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter

import pytest
from hypothesis import settings

from tests import both_stores, postgres_server

# fixtures for every test
postgres = postgres_server.postgres
new_store, reopen = both_stores.new_store, both_stores.reopen

# The same few examples in every run, so that a failure points at the change and not at luck; the
# long run (docs/internals/reliability.md) looks for new ones with HYPOTHESIS_EXAMPLES=1000.
_more = int(os.environ.get("HYPOTHESIS_EXAMPLES", "0"))
settings.register_profile("suite", deadline=None, derandomize=not _more, max_examples=_more or 25)
settings.load_profile("suite")

# A shell starts background jobs with Ctrl-C ignored, and their children inherit that; the commands
# that tests interrupt must hear it nevertheless.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: tests of programs wait about as long as they compute."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: without them, a garbage collection in a test
    takes milliseconds instead of more than a second."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in plain words what was skipped, and the command that brings what is missing."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    for reason, count in reasons.most_common():
        tests = "1 test was" if count == 1 else f"{count} tests were"
        terminalreporter.write_line(f"{tests} skipped: {reason}")
