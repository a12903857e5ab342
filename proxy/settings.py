"""What an operator can set: frozen models, one per section of `config/usher.yaml`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from proxy.judge_settings import Classification
from proxy.memory_settings import Memory
from proxy.triage_settings import Limits, Triage

Mode = Literal["off", "observe", "on"]


class Section(BaseModel):
    """A section of the configuration: immutable, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Server(Section):
    """Where Usher listens and how it stops."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8787, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    workers: int = Field(1, ge=1, description="Number of worker processes.")
    max_body_bytes: int = Field(
        64 * 1024 * 1024, ge=1, description="Largest request body in bytes; more is a 413."
    )
    client_seconds: float = Field(
        60.0,
        gt=0,
        description="Seconds for the head of a request, and without a byte of its body; then 408.",
    )
    drain_seconds: float = Field(
        30.0, ge=0, description="Seconds that running streams get to finish after SIGTERM."
    )
    ping_seconds: float = Field(
        10.0, gt=0, description="Seconds of silence after which a stream gets a keep-alive line."
    )
    cors_origins: tuple[str, ...] = Field(
        (), description="Origins whose web pages may call Usher, e.g. https://app.example; or *."
    )
    insecure: bool = Field(
        False, description="Allow an address other than loopback without any key configured."
    )
    metrics_key: bool = Field(
        False, description="Show /metrics to admin keys of tenant * only, not to everybody."
    )


class Upstream(Section):
    """The OpenAI-compatible server that answers when no provider matches the model."""

    base_url: str | None = Field(
        None, description="Base URL with its `/v1`; unset: OPENAI_BASE_URL, else the stand-in."
    )
    api_key: SecretStr | None = Field(
        None, description="Key sent upstream; unset: the caller's own Authorization is forwarded."
    )
    transport: Literal["aiohttp", "httpx"] = Field(
        "aiohttp",
        description="HTTP client: aiohttp (HTTP/1.1, least CPU) or httpx (HTTP/2, proxies).",
    )
    connect_seconds: float = Field(5.0, gt=0, description="Seconds to wait for a connection.")
    idle_seconds: float = Field(
        600.0, gt=0, description="Seconds without a byte from the upstream before giving up."
    )
    retries: int = Field(
        2, ge=0, description="Further attempts when the upstream accepted nothing (connect errors)."
    )
    ask_usage: bool = Field(
        True, description="Ask for the usage chunk on intercepted streams; off for strict servers."
    )


class Provider(Section):
    """A further upstream, chosen by model name."""

    name: str = Field(description="Name used in logs and the ledger.")
    kind: Literal["openai", "litellm", "standin"] = Field(
        "openai", description="Wire format: openai, litellm (other vendors), standin (offline)."
    )
    models: tuple[str, ...] = Field(description="Model names or globs that this provider serves.")
    base_url: str | None = Field(None, description="Base URL with its `/v1` (kind openai).")
    api_key: SecretStr | None = Field(None, description="Key sent to this provider.")
    model: str | None = Field(
        None, description="Model name sent instead of the client's, e.g. anthropic/claude-…"
    )
    ask_usage: bool = Field(True, description="Ask this provider for the usage chunk.")


class Deferral(Section):
    """Taking tool schemas out of the prompt."""

    mode: Mode = Field("on", description="on, observe (plan and record, change nothing) or off.")
    min_tools: int = Field(
        16, ge=0, description="Fewer tools than this, and less schema than min_chars: untouched."
    )
    min_chars: int = Field(
        24_000, ge=0, description="Characters of schema from which deferral starts."
    )
    small_chars: int = Field(
        300, ge=0, description="A tool under this many characters in all stays, see eager_chars."
    )
    eager_chars: int = Field(
        4_000, ge=0, description="Characters of small schemas that stay in the prompt in all."
    )
    pin: tuple[str, ...] = Field((), description="Names or globs of tools that are never deferred.")
    defer: tuple[str, ...] = Field(
        (), description="Names or globs of tools that are deferred even when small."
    )
    delivery: Literal["append", "frozen", "auto"] = Field(
        "append", description="How found schemas reach the model: appended to tools, or in results."
    )
    append_models: tuple[str, ...] = Field(
        ("*deepseek*", "*mimo*", "*glm*"),
        description="Delivery auto: models that keep their cache, or need tools declared.",
    )
    frozen_models: tuple[str, ...] = Field(
        (), description="Delivery auto: models that always get the frozen delivery."
    )
    signed_models: tuple[str, ...] = Field(
        ("*gemini-3*", "*thinking*"),
        description="Models that sign reasoning before a call: no search is made in their name.",
    )
    cache_models: tuple[str, ...] = Field(
        (),
        description="Models that cache up to a `cache_control` mark: the search tool gets one.",
    )
    cache_price: float = Field(
        0.1, ge=0, le=1, description="Delivery auto: price of a cached token, 1 being full price."
    )
    expected_calls: int = Field(
        6, ge=1, description="Delivery auto: upstream calls expected of a conversation."
    )
    expected_history_tokens: int = Field(
        6_000, ge=0, description="Delivery auto: history tokens expected at a late find."
    )
    listing_max_tokens: int = Field(
        1_500, ge=0, description="Size in tokens of the list of tools inside tool_search."
    )
    search_name: str = Field(
        "tool_search",
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Name of the search tool, as providers allow function names.",
    )
    search_limit: int = Field(5, ge=1, le=10, description="Most results per query.")
    search_max_new: int = Field(12, ge=1, description="Most tools one search may load.")
    search_max_chars: int = Field(
        8_000, ge=0, description="Characters of schema one search may load beyond its best find."
    )
    max_rounds: int = Field(4, ge=1, le=20, description="Most hidden rounds before a final one.")
    max_seconds: float = Field(120.0, gt=0, description="Seconds after which rounds end.")
    max_prompt_growth: float = Field(
        3.0, ge=1, description="Hidden rounds end when the prompt grew by this factor."
    )
    max_surfaced: int = Field(
        64, ge=1, description="Most deferred tools loaded at once; the oldest uncalled leave first."
    )
    max_repairs: int = Field(2, ge=0, description="Hidden repair rounds per tool.")
    narration: Literal["forward", "hold"] = Field(
        "forward", description="Text before a search: forward it live, or hold it back."
    )


class Prediction(Section):
    """Shipping the schemas that the turn will probably need."""

    mode: Mode = Field("on", description="on, observe (record only) or off.")
    ranker: Literal["auto", "lexical", "semantic"] = Field(
        "auto", description="auto uses semantic when its extra is installed."
    )
    vectors_share: float = Field(
        0.5, gt=0, le=1, description="Most of one core for a large catalogue's sentence vectors."
    )
    shortlist: int = Field(5, ge=0, le=32, description="Tools predicted on an ordinary turn.")
    widest: int = Field(8, ge=0, le=32, description="Tools predicted when several are close.")
    mentions: bool = Field(True, description="Always load tools that the user names.")
    sibling_weight: float = Field(
        0.7, ge=0, description="Weight of having used another tool of the same server."
    )
    usage_weight: float = Field(0.1, ge=0, description="Weight of how often a tool was called.")
    examples: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Words or questions by tool name that a tool answers but does not mention.",
    )
    abstain: bool = Field(True, description="Predict nothing when the message needs no tool.")
    learn: bool = Field(
        True, description="Remember in memory, per tenant, which tool a search's words ended in."
    )
    capture: str | None = Field(
        None, description="File that gets the query and tool names of searches that ended in calls."
    )


class Ledger(Section):
    """The record of every upstream call."""

    enabled: bool = Field(True, description="Write a row per upstream call.")
    url: str | None = Field(
        None, description="SQLAlchemy URL; unset: SQLite in the data folder (USHER_DATA)."
    )
    flush_ms: int = Field(200, ge=1, description="Longest time in ms that a row waits in memory.")
    queue_rows: int = Field(10_000, ge=1, description="Rows kept in memory when the disk is slow.")
    keep_days: int = Field(90, ge=1, description="Days after which rows are deleted.")
    keep_rows: int | None = Field(
        None, ge=1, description="Most calls to keep; the oldest leave first. Unset: no limit."
    )


class Price(Section):
    """What a model costs, in USD per million tokens; wins over every other source."""

    model: str = Field(description="Model name or glob, e.g. my-model or acme/*.")
    input: float = Field(ge=0, description="Prompt tokens.")
    output: float = Field(0.0, ge=0, description="Completion tokens.")
    cached: float | None = Field(
        None, ge=0, description="Prompt tokens read from a cache; unset: as input."
    )
    cache_write: float | None = Field(
        None, ge=0, description="Prompt tokens written to a cache; unset: as input."
    )
    reasoning: float | None = Field(
        None, ge=0, description="Completion tokens spent on reasoning; unset: as output."
    )
    request: float = Field(0.0, ge=0, description="USD per request, on top of the tokens.")


class Keys(Section):
    """Who may use the gateway; `usher key` edits the file."""

    file: str | None = Field(
        None, description="File with the gateway keys (hashes only); unset: in the data folder."
    )
    refresh_seconds: float = Field(
        1.0, gt=0, description="Seconds after which a changed file is noticed."
    )


class State(Section):
    """What is kept for a while: parked rounds, conversations, what keys used of their limits."""

    url: str | None = Field(
        None, description="Redis or Valkey that all processes share; unset: each one's memory."
    )
    prefix: str = Field(
        "usher", pattern=r"^[A-Za-z0-9_.-]{1,32}$", description="How its keys begin there."
    )
    timeout_ms: int = Field(1000, ge=1, description="Longest wait for an answer of it, in ms.")
    max_bytes: int = Field(
        64 * 1024 * 1024, ge=0, description="Memory for it in bytes, where no URL is set."
    )
    ttl_seconds: int = Field(6 * 3600, ge=1, description="Seconds an entry lives.")


class Caches(Section):
    """Memory that makes repeated catalogues cheap."""

    catalogue_bytes: int = Field(
        256 * 1024 * 1024, ge=0, description="Memory for prepared tool catalogues, in bytes."
    )


class Log(Section):
    """What is written to stderr; never bodies, keys or memory values."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe level that is written."
    )
    format: Literal["auto", "json", "pretty"] = Field(
        "auto", description="auto: pretty on a terminal, JSON otherwise."
    )


class Tracing(Section):
    """Traces and metrics for OpenTelemetry; where to is said by its own OTEL_* variables."""

    enabled: bool = Field(False, description="Send a span per turn, round and judgment.")


class Settings(Section):
    """The whole configuration."""

    server: Server = Server()
    upstream: Upstream = Upstream()
    providers: tuple[Provider, ...] = ()
    deferral: Deferral = Deferral()
    prediction: Prediction = Prediction()
    classification: Classification = Classification()
    memory: Memory = Memory()
    triage: Triage = Triage()
    limits: Limits = Limits()
    ledger: Ledger = Ledger()
    prices: tuple[Price, ...] = ()
    keys: Keys = Keys()
    state: State = State()
    caches: Caches = Caches()
    log: Log = Log()
    tracing: Tracing = Tracing()
