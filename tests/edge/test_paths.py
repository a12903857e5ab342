"""Paths: every base URL that a client may have leads to the same resource."""

import pytest

from proxy.edge.paths import Place, locate
from proxy.errors import BadRequest


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/chat/completions",
        "//v1//chat//completions",
        "/v1/chat/completions/",
        "/openai/v1/chat/completions",
    ],
)
def test_chat_is_found_behind_any_base_url(path: str) -> None:
    """A base URL with `/v1`, without it or with doubled slashes reaches the chat turn."""
    assert locate(path.encode()) == Place("/chat/completions", chat=True)


def test_azure_deployment_names_the_model() -> None:
    """Azure's SDK puts the model into the path, percent-encoded."""
    place = locate(b"/openai/deployments/gpt%204o/chat/completions")
    assert place == Place("/chat/completions", chat=True, deployment="gpt 4o")


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/v1/models", "/models"),
        ("/models/gpt-4o", "/models/gpt-4o"),
        ("/v1/files/a%2Fb/content", "/files/a%2Fb/content"),
        ("//v1//files//x", "/files//x"),
        ("/v1/chat/completions/id/messages", "/chat/completions/id/messages"),
        ("/v1/something/new", "/something/new"),
        ("/openai/v1/responses", "/responses"),
        ("/openai/models", "/models"),
        ("/v1/chat%2Fcompletions", "/chat%2Fcompletions"),
    ],
)
def test_other_resources_keep_their_path_as_sent(path: str, resource: str) -> None:
    """Whatever else the API has keeps its bytes below the prefix."""
    assert locate(path.encode()) == Place(resource)


def test_other_azure_resources_keep_their_deployment() -> None:
    """Embeddings of an Azure deployment are forwarded with its name."""
    place = locate(b"/openai/deployments/ada/embeddings")
    assert place == Place("/embeddings", deployment="ada")


@pytest.mark.parametrize("path", ["/", "", "/v1", "/v1/", "/openai", "/index.html", "/usher/usage"])
def test_foreign_paths_are_not_of_the_api(path: str) -> None:
    """Anything outside the API is not forwarded to the upstream."""
    assert locate(path.encode()) is None


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../x",
        "/v1/%2e%2E/x",
        "/v1/files/.%2e/x",
        "/v1/./x",
        "/openai/deployments/../chat/completions",
        "/openai/deployments/%2e%2e/embeddings",
    ],
)
def test_dot_segments_are_refused(path: str) -> None:
    """No path can climb out of the upstream's base URL."""
    with pytest.raises(BadRequest, match="dot segments"):
        locate(path.encode())


@pytest.mark.parametrize("rest", ["/chat/completions", "/gpt-4.1/chat/completions"])
def test_a_deployment_without_a_name_is_refused(rest: str) -> None:
    """What follows must not be taken for its name, and be sent somewhere else."""
    with pytest.raises(BadRequest, match="no deployment"):
        locate(f"/openai/deployments/{rest}".encode())
