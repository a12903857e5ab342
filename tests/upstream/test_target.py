"""Which upstream a model goes to, and the URL that its requests get."""

import pytest
from pydantic import SecretStr

from proxy.errors import ConfigError
from proxy.settings import Provider, Settings, Upstream
from proxy.upstream.target import Target, Targets, choose_target, url_for

AZURE = "https://res.openai.azure.com"
CHAT = "/chat/completions"


def target(base_url: str) -> Target:
    return Target("p", "openai", base_url, None, None, ask_usage=True)


def provider(name: str, *models: str, base_url: str | None = "http://p/v1") -> Provider:
    return Provider(name=name, models=models, base_url=base_url)


def test_nothing_configured_is_the_stand_in() -> None:
    """Without any upstream the model of this process answers."""
    chosen = choose_target(Settings(), "gpt-x")
    assert (chosen.provider, chosen.kind, chosen.api_key) == ("standin", "standin", None)


def test_default_upstream_serves_what_no_provider_names() -> None:
    """The upstream section answers for every other model, with its key."""
    settings = Settings(
        upstream=Upstream(
            base_url="https://api.example.com/v1", api_key=SecretStr("sk-up"), ask_usage=False
        ),
        providers=(provider("local", "llama-*"),),
    )
    assert choose_target(settings, "gpt-x") == Target(
        "default", "openai", "https://api.example.com/v1", "sk-up", None, ask_usage=False
    )


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("llama-3", "local"),
        ("llama-3-70b", "local"),
        ("gpt-4.1", "exact"),
        ("gpt-4.1-mini", "gpt"),
        ("GPT-4.1", "standin"),
        ("my-llama-3", "standin"),
        ("", "standin"),
        ("mistral/small", "slashed"),
        ("x\n", "standin"),
    ],
)
def test_first_matching_provider_wins(model: str, name: str) -> None:
    """Names and globs match the whole model name, in the order of the file."""
    settings = Settings(
        providers=(
            provider("exact", "gpt-4.1", "o[13]"),
            provider("gpt", "gpt-*"),
            provider("local", "llama-*"),
            provider("slashed", "mistral/*"),
        )
    )
    assert Targets(settings).choose(model).provider == name


def test_litellm_provider_needs_no_address() -> None:
    """A provider through litellm is known by its model; the name sent is the configured one."""
    settings = Settings(
        providers=(
            Provider(
                name="claude", kind="litellm", models=("claude-*",), model="anthropic/claude-x"
            ),
        )
    )
    chosen = choose_target(settings, "claude-y")
    assert (chosen.kind, chosen.model) == ("litellm", "anthropic/claude-x")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("api.example.com/v1", "not an http or https URL"),
        ("ftp://api.example.com", "not an http or https URL"),
        ("http://", "not an http or https URL"),
        ("http://h:port/v1", "not a URL"),
        ("http://[::1/v1", "not a URL"),
        ("https://user:pw@api.example.com/v1", "api_key"),
        ("https://api.example.com/v1#x", "fragment"),
    ],
)
def test_unusable_base_url_is_said_at_the_start(url: str, words: str) -> None:
    """A wrong address is an error of the configuration, without the address's secrets."""
    with pytest.raises(ConfigError, match=words) as caught:
        Targets(Settings(upstream=Upstream(base_url=url)))
    assert "pw" not in caught.value.message


def test_openai_provider_needs_an_address() -> None:
    """A provider of OpenAI's format is nothing without its base URL."""
    with pytest.raises(ConfigError, match="provider local is missing"):
        Targets(Settings(providers=(provider("local", "*", base_url=None),)))


@pytest.mark.parametrize(
    "base_url",
    [
        "https://api.example.com/v1",
        "https://api.example.com/v1/",
        "https://api.example.com//v1//",
    ],
)
@pytest.mark.parametrize(
    "path", ["/chat/completions", "/v1/chat/completions", "//v1//chat/completions"]
)
def test_base_url_and_path_meet_at_one_v1(base_url: str, path: str) -> None:
    """Whichever side has the `/v1` and however slashes are doubled, the URL is the SDK's."""
    chosen = Targets(Settings(upstream=Upstream(base_url=base_url))).default
    assert url_for(chosen, path) == "https://api.example.com/v1/chat/completions"


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://127.0.0.1:4010", "http://127.0.0.1:4010/embeddings"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/embeddings"),
        ("https://g.example/v1beta/openai/", "https://g.example/v1beta/openai/embeddings"),
    ],
)
def test_base_url_is_what_an_sdk_would_be_given(base_url: str, url: str) -> None:
    """Nothing is added to a base URL that has no `/v1`, or another one."""
    assert url_for(target(base_url), "/embeddings") == url


def test_two_providers_of_one_name_are_refused() -> None:
    """A key that is bound to the name would get the first of them."""
    twins = (provider("twin", "a*"), provider("twin", "b*"))
    with pytest.raises(ConfigError, match="two providers are named 'twin'"):
        Targets(Settings(providers=twins))


def test_path_and_query_stay_as_written() -> None:
    """Escapes, brackets and later double slashes are the client's own."""
    url = url_for(target("http://h/v1"), "/files/a%2Fb//c%20d", "include[]=x&include[]=y&e=%C3%A4")
    assert url == "http://h/v1/files/a%2Fb//c%20d?include[]=x&include[]=y&e=%C3%A4"


@pytest.mark.parametrize(
    ("base_url", "deployment", "url"),
    [
        (AZURE, "gpt-4o", f"{AZURE}/openai/deployments/gpt-4o/chat/completions?api-version=1"),
        (f"{AZURE}/openai/", "a b", f"{AZURE}/openai/deployments/a%20b{CHAT}?api-version=1"),
        (AZURE, None, f"{AZURE}/openai/v1/chat/completions?api-version=1"),
        (f"{AZURE}/openai/v1/", None, f"{AZURE}/openai/v1/chat/completions?api-version=1"),
        (f"{AZURE}/openai/deployments/d", "x", f"{AZURE}/openai/deployments/d{CHAT}?api-version=1"),
        ("https://api.example.com/v1", "gpt-4o", "https://api.example.com/v1/chat/completions"),
    ],
)
def test_azure_paths(base_url: str, deployment: str | None, url: str) -> None:
    """A deployment goes back into an Azure resource's path; elsewhere its version is dropped."""
    assert url_for(target(base_url), CHAT, "api-version=1", deployment) == url


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("", "api-version=2"),
        ("api-version=1", "api-version=1"),
        ("after=x", "api-version=2&after=x"),
    ],
)
def test_query_of_the_base_url_fills_gaps(query: str, sent: str) -> None:
    """An API version in the base URL is for clients that send none."""
    base_url = f"{AZURE}/openai/deployments/d?api-version=2"
    assert url_for(target(base_url), CHAT, query).partition("?")[2] == sent
