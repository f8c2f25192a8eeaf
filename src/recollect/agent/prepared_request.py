"""The next request of a session, for previews."""

from __future__ import annotations

from typing import NamedTuple

from recollect.agent.exchange import count_tools
from recollect.agent.fit_context import ContextReduced
from recollect.codecs.wire_protocol import RequestOptions
from recollect.compaction.budget import Budget
from recollect.view.view import View


class PreparedRequest(NamedTuple):
    """The next request of a session, exactly as it would be sent."""

    view: View
    options: RequestOptions
    budget: Budget  # for the messages alone: without the tools
    reduced: tuple[ContextReduced, ...]  # what would be left out or compacted before

    @property
    def tokens(self) -> int:
        """Of the whole request: its messages and its tools."""
        return self.view.tokens + self.tool_tokens

    @property
    def tool_tokens(self) -> int:
        """Of the tools' declarations."""
        return count_tools(self.options.tools, self.view.log.counter)
