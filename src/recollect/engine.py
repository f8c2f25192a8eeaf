"""The parts below `Session`, for programs that put them together in their own way.

The store keeps entries; the view folds them; rules and compaction plan edits; `repair` makes the
messages acceptable to a provider. None of them calls a model.
"""

from __future__ import annotations

from recollect.agent.hooks import Hooks
from recollect.codecs.repair import repair
from recollect.codecs.wire_protocol import RequestOptions
from recollect.compaction.budget import Budget
from recollect.compaction.proposal import propose_compaction
from recollect.compaction.view_reduction import fit_view
from recollect.session_compaction import compact
from recollect.store.contract import Project, SearchQuery, Store
from recollect.store.open_store import open_store
from recollect.tokens import counter_for
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.view import View, ViewItem
from recollect.view_loader import load_view

__all__ = [
    "Budget",
    "ElisionRules",
    "Hooks",
    "Project",
    "RequestOptions",
    "SearchQuery",
    "Store",
    "View",
    "ViewItem",
    "compact",
    "counter_for",
    "fit_view",
    "load_view",
    "open_store",
    "plan_elisions",
    "propose_compaction",
    "repair",
]
