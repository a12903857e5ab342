"""An upstream's port comes in; how to start each server that is installed goes out."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.programs import CACHE

KEY = "Authorization: Bearer sk-bench\r\n"
NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_max_body_size 64m; client_body_buffer_size 2m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 256; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_request_buffering off;
    }}
  }}
}}
"""
LITELLM = """
model_list:
  - model_name: gpt-4o-mini
    litellm_params:
      model: openai/gpt-4o-mini
      api_base: http://127.0.0.1:{upstream}/v1
      api_key: sk-bench
"""


@dataclass(frozen=True, slots=True)
class Server:
    """One thing to measure; `headers` go with every request."""

    name: str
    command: Sequence[str | Path]
    port: int
    ready: str = "/"
    environ: Mapping[str, str] = field(default_factory=dict)
    headers: str = KEY


@dataclass(frozen=True, slots=True)
class Site:
    """Where a server runs, and what it passes on to."""

    folder: Path
    upstream: int
    port: int


def usher(site: Site) -> Server:
    """Usher as `usher serve` starts it, ledger and all."""
    return Server(
        "usher",
        [
            sys.executable,
            "-c",
            "from proxy.cli import main; main()",
            "serve",
            f"--port={site.port}",
        ],
        site.port,
        "/healthz",
        {
            "OPENAI_BASE_URL": f"http://127.0.0.1:{site.upstream}/v1",
            "OPENAI_API_KEY": "sk-bench",
            "USHER_DATA": str(site.folder / "data"),
            "PYTHONPATH": str(Path(__file__).parent.parent),
        },
    )


def echo(site: Site) -> Server:
    """The floor: uvicorn that reads a request and answers it."""
    return Server(
        "echo", [sys.executable, Path(__file__).parent / "echo.py", str(site.port)], site.port
    )


def nginx(site: Site) -> Server | None:
    """The bar."""
    program = shutil.which("nginx") or CACHE / "nginx" / "usr" / "sbin" / "nginx"
    if not Path(program).exists():
        return None
    site.folder.mkdir(parents=True, exist_ok=True)
    config = site.folder / "nginx.conf"
    config.write_text(NGINX.format(folder=site.folder, upstream=site.upstream, port=site.port))
    return Server("nginx", [program, "-e", "stderr", "-c", config], site.port)


def litellm(site: Site) -> Server | None:
    """LiteLLM's proxy in its fastest mode: no database, no callbacks."""
    program = CACHE / "litellm" / "bin" / "litellm"
    if not program.exists():
        return None
    site.folder.mkdir(parents=True, exist_ok=True)
    config = site.folder / "litellm.yaml"
    config.write_text(LITELLM.format(upstream=site.upstream))
    environ = {
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        "LITELLM_LOG": "ERROR",
    }
    command: list[str | Path] = [
        program,
        "--config",
        config,
        "--port",
        str(site.port),
        "--host",
        "127.0.0.1",
    ]
    return Server("litellm", command, site.port, "/health/liveliness", environ)


def portkey(site: Site) -> Server | None:
    """Portkey's gateway on Node."""
    found = sorted(
        (CACHE / "portkey").glob("node_modules/@portkey-ai/gateway/build/start-server.js")
    )
    node = shutil.which("node")
    if not found or node is None:
        return None
    headers = (
        "x-portkey-provider: openai\r\n"
        f"x-portkey-custom-host: http://127.0.0.1:{site.upstream}/v1\r\n"
    )
    return Server(
        "portkey",
        [node, found[0], f"--port={site.port}", "--headless"],
        site.port,
        "/",
        {"TRUSTED_CUSTOM_HOSTS": "127.0.0.1,localhost", "NODE_ENV": "production"},
        KEY + headers,
    )


def vllm_router(site: Site) -> Server | None:
    """The router of vLLM: the Rust reference."""
    program = CACHE / "vllm" / "bin" / "vllm-router"
    if not program.exists():
        return None
    command: list[str | Path] = [
        program, "--host", "127.0.0.1", "--port", str(site.port),
        "--worker-urls", f"http://127.0.0.1:{site.upstream}",
    ]  # fmt: skip
    return Server("vllm-router", command, site.port, "/health")


def installed(folder: Path, upstream: int, ports: Iterator[int]) -> list[Server]:
    """All servers that can be started here, Usher first."""

    def site(name: str) -> Site:
        return Site(folder / name, upstream, next(ports))

    own = [usher(site("usher")), echo(site("echo"))]
    makers = (nginx, vllm_router, portkey, litellm)
    peers = [make(site(make.__name__)) for make in makers]
    return [*own, *(peer for peer in peers if peer is not None)]
