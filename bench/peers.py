"""`make bench-peers`: the peers that can be had here are installed below `.cache/bench`."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.programs import CACHE

LITELLM = "litellm[proxy]==1.108.7"
VLLM_ROUTER = "vllm-router==0.1.17"
PORTKEY = "@portkey-ai/gateway@1.15.2"


def main() -> int:
    """Install each one; one that cannot be had is left out."""
    CACHE.mkdir(parents=True, exist_ok=True)
    installers: Sequence[tuple[str, Callable[[], None]]] = (
        ("nginx", _nginx),
        ("vllm-router", lambda: _python(CACHE / "vllm", VLLM_ROUTER)),
        ("portkey", _portkey),
        ("litellm", lambda: _python(CACHE / "litellm", LITELLM)),
    )
    for name, install in installers:
        print(f"{name} …", flush=True)
        try:
            install()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"  not installed: {error}")
    return 0


def _python(folder: Path, package: str) -> None:
    """A package with all its own dependencies, away from ours."""
    if not (folder / "bin" / "pip").exists():
        _run([sys.executable, "-m", "venv", folder])
    _run([folder / "bin" / "pip", "--disable-pip-version-check", "install", "--quiet", package])


def _portkey() -> None:
    _run(["npm", "install", "--silent", "--no-audit", "--prefix", CACHE / "portkey", PORTKEY])


def _nginx() -> None:
    """Debian's package, unpacked only: it is not made a service of this machine."""
    if shutil.which("nginx"):
        return
    folder = CACHE / "nginx"
    folder.mkdir(exist_ok=True)
    _run(["apt-get", "download", "--quiet", "nginx"], folder)
    _run(["dpkg-deb", "-x", next(folder.glob("nginx_*.deb")), folder])


def _run(command: Sequence[str | Path], folder: Path | None = None) -> None:
    subprocess.run(command, check=True, cwd=folder)


if __name__ == "__main__":
    sys.exit(main())
