"""Shown where no model is configured that can play the agent: what was found, and what to do."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message as TextualMessage
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from recollect.display.display_text import sanitize
from recollect.profiles import ENDPOINTS
from recollect.runtime.model_offers import ModelOffers

SUGGESTED_KEYS = 3  # variables that are named
MAX_MODELS = 6
DOWNLOAD, RECORDING = "download", "recording"
_USE, _WITHOUT = "use ", "without"


def explain_offers(offers: ModelOffers) -> str:
    if offers.problem:
        return f"No model can be chosen: {offers.problem}"
    keys = [one.keys[0] for one in ENDPOINTS if one.keys][:SUGGESTED_KEYS]
    return (
        "No model is set up that can work with tools here.\n"
        f"With an API key: leave, export {', '.join(keys)} or another, and come back."
    )


class ModelOffersPanel(Vertical):
    DEFAULT_CSS = """
    ModelOffersPanel { height: auto; border: round $primary; padding: 0 1; }
    ModelOffersPanel OptionList, ModelOffersPanel OptionList:focus {
        height: auto; border: none; padding: 0; background: $background;
    }
    """

    class Chosen(TextualMessage):
        """What the user chose: a model to use or to download, the recording, or nothing."""

        def __init__(self, choice: str, model: str = "") -> None:
            super().__init__()
            self.choice, self.model = choice, model

    def __init__(self, offers: ModelOffers) -> None:
        super().__init__()
        self.offers = offers

    def compose(self) -> ComposeResult:
        yield Static(sanitize(explain_offers(self.offers)), markup=False)
        yield OptionList(*self._options(), markup=False)

    def _options(self) -> list[Option]:
        found = [
            Option(sanitize(f"Use {model}, which {server.name} runs here"), f"{_USE}{model}")
            for server in self.offers.servers
            for model in server.models[:MAX_MODELS]
        ][:MAX_MODELS]
        if self.offers.download:
            size = f"{self.offers.download_bytes / 1e9:.1f} GB"
            text = f"Download {self.offers.download} ({size}), a small coder that runs offline"
            found.append(Option(text, DOWNLOAD))
        found.append(Option("Walk through a recorded session, with real tools", RECORDING))
        found.append(Option("Go on without: a small local model answers questions", _WITHOUT))
        return found

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        choice = event.option_id or _WITHOUT
        if choice.startswith(_USE):
            self.post_message(self.Chosen("use", choice.removeprefix(_USE)))
        else:
            model = f"embedded/{self.offers.download}" if choice == DOWNLOAD else ""
            self.post_message(self.Chosen(choice, model))
        self.remove()
