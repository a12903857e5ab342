"""A catalogue prepared once for many requests: split, listing, index and argument checkers."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from xxhash import xxh3_64_intdigest, xxh3_128_digest

from proxy.settings import Deferral, Prediction
from proxy.tools.bridge import NAME, bridge_tool
from proxy.tools.catalog import Catalogue, Tool
from proxy.tools.defer import Split, find_mentions, split_tools
from proxy.tools.document import Document
from proxy.tools.listing import render_listing, search_tool
from proxy.tools.memo import Memo
from proxy.tools.predict import Cue, Predicted, predict
from proxy.tools.rank import Index
from proxy.tools.tokens import count_all, estimate_tokens
from proxy.tools.validate import Checker

MakeIndex = Callable[[Sequence[Document]], Index]
PROMPTS = 512
"""System prompts whose mentions of tools are remembered."""
_serials = itertools.count(1)


class Toolbox:
    """Everything about one tenant's catalogue that does not depend on the conversation.

    `search_raw` is the JSON of the injected search tool. Its listing names every deferrable tool,
    loaded or not, so that its bytes never change within a conversation. `memo` remembers what was
    predicted; toolboxes may share one, as their serial numbers keep their entries apart.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        deferral: Deferral,
        prediction: Prediction,
        make_index: MakeIndex,
        memo: Memo | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.split: Split = split_tools(catalogue, deferral)
        self.deferrable: Mapping[str, Tool] = {tool.name: tool for tool in self.split.deferrable}
        self.search_name = choose_name(catalogue, deferral.search_name, "find_tools")
        self.bridge_name = choose_name(catalogue, NAME, "use_tool")
        self.bridge_raw = bridge_tool(self.bridge_name, self.search_name)
        self._deferral = deferral
        self._prediction = prediction
        self._make_index = make_index
        self._whole: Index | None = None
        documents = [_document(tool) for tool in self.split.deferrable]
        self.search_raw = self.render_search(self.split.deferrable)
        self.index = make_index(documents)
        self._checkers: dict[str, Checker] = {}
        self._serial = next(_serials)
        self._memo = Memo() if memo is None else memo
        self._foreseeing = threading.Lock()
        self.usage: Counter[str] = Counter()
        self._tokens: Mapping[str, int] | None = None
        self._search_tokens = self._all_tokens = 0
        self._mentions: dict[int, tuple[str, ...]] = {}

    @property
    def size(self) -> int:
        """A rough count of the bytes that this object keeps alive."""
        return self.catalogue.chars * 4 + len(self.search_raw) + 2_000 * len(self.deferrable)

    def render_search(self, tools: Iterable[Tool]) -> bytes:
        """The search tool with a listing of just these tools."""
        documents = [_document(tool) for tool in tools]
        listing = render_listing(
            documents, self._deferral.listing_max_tokens, lambda text: estimate_tokens(len(text))
        )
        return search_tool(self.search_name, listing)

    def whole_index(self) -> Index:
        """An index of every function of the catalogue, whatever is deferred; made on first use."""
        if self._whole is None:
            functions = [tool for tool in self.catalogue.tools if tool.kind == "function"]
            self._whole = self._make_index([_document(tool) for tool in functions])
        return self._whole

    def narrow(self, names: Iterable[str]) -> Index:
        """An index of some of the tools only, for a choice that allows no others."""
        return self._make_index([_document(self.deferrable[name]) for name in names])

    def checker(self, name: str) -> Checker:
        """The argument checker of one tool, compiled on first use."""
        checker = self._checkers.get(name)
        if checker is None:
            checker = Checker(self.catalogue.by_name[name].parameters)
            self._checkers[name] = checker
        return checker

    def predict(self, cue: Cue, *, forced: bool = False) -> Predicted:
        """What the turn will probably need; the same cue always gets the same answer.

        The memo is what keeps old turns of a conversation stable while usage counts move on.
        `forced` never abstains, for a client that requires a call.
        """
        key = self._key(cue, forced=forced)
        known = self._memo.find(key)
        if known is None:
            settings = self._prediction
            if forced:
                settings = settings.model_copy(update={"abstain": False})
            known = self._memo.keep(key, predict(self.index, cue, settings, self.usage))
        return known

    def foreknows(self, cue: Cue) -> bool:
        """Whether this moment was predicted before."""
        return self._key(cue, forced=False) in self._memo

    def foresee(self, cues: Iterable[Cue]) -> None:
        """Predicts the moments of a long conversation, in a thread; a second caller waits."""
        with self._foreseeing:
            for cue in cues:
                self.predict(cue)

    def _key(self, cue: Cue, *, forced: bool) -> bytes:
        """What stands for a cue of this catalogue; its texts may be long."""
        said = (cue.newest_user, cue.previous_user, cue.last_assistant)
        parts = (*said, "\x1e".join(cue.called), "\x1e".join(cue.results), str(forced))
        text = "\x1f".join(parts)
        return xxh3_128_digest(text.encode(errors="surrogatepass"), seed=self._serial)

    def mentions(self, text: str) -> tuple[str, ...]:
        """The deferrable tools that a system prompt names; prompts stay the same for long."""
        if not text:
            return ()
        key = xxh3_64_intdigest(text.encode(errors="surrogatepass"))
        found = self._mentions.get(key)
        if found is None:
            found = tuple(find_mentions(text, self.deferrable.values()))
            if len(self._mentions) >= PROMPTS:
                self._mentions.pop(next(iter(self._mentions)))
            self._mentions[key] = found
        return found

    def count(self) -> None:
        """Counts the tokens of every tool once; takes long, so call it off the event loop."""
        tools = self.catalogue.tools
        raws = [*(tool.raw for tool in tools), self.search_raw]
        *counts, self._search_tokens = count_all([raw.decode(errors="replace") for raw in raws])
        tokens = {tool.name: count for tool, count in zip(tools, counts, strict=True)}
        self._all_tokens = sum(tokens.values())
        self._tokens = tokens

    def count_saved(self, declared: Collection[str]) -> int | None:
        """Tokens of schema that stay out of the prompt; None until `count` was called."""
        if self._tokens is None:
            return None
        absent = self._all_tokens - sum(self._tokens.get(name, 0) for name in declared)
        return max(0, absent - self._search_tokens)

    def count_sent(self, declared: Collection[str]) -> int | None:
        """Tokens of the tools that are sent, the search tool included; None until counted."""
        if self._tokens is None:
            return None
        return sum(self._tokens.get(name, 0) for name in declared) + self._search_tokens


def choose_name(catalogue: Catalogue, preferred: str, second: str) -> str:
    """A name that no tool of the client has: the preferred one, else one that is still stable."""
    for name in (preferred, second, f"{preferred}_{catalogue.digest[:4]}"):
        if name not in catalogue.by_name:
            return name
    return f"{preferred}_{catalogue.digest[:16]}"


def _document(tool: Tool) -> Document:
    return Document(tool.name, tool.group, tool.description, tool.parameters)
