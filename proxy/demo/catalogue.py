"""Nothing or a file comes in; a catalogue of tools for the demo comes out."""

import gzip
from importlib.resources import files
from pathlib import Path

import orjson

from proxy.errors import ConfigError
from proxy.wire import JSON, JSONObject

FILE, MORE = "azure_235_tools.json.gz", "public_644_tools.json.gz"


def load_tools() -> list[JSONObject]:
    """The catalogue as an OpenAI `tools` array; 113,941 o200k tokens when sent compactly."""
    return _unpack(FILE)


def load_large() -> list[JSONObject]:
    """The same tools and 644 of other public MCP servers: 229,951 tokens."""
    return [*load_tools(), *_unpack(MORE)]


def read_tools(path: Path) -> list[JSONObject]:
    """A file's `tools` array, plain or within a request. Raises ConfigError when it is none."""
    try:
        parsed: JSON = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{path} is not JSON: {error.msg}") from error
    tools = parsed.get("tools") if isinstance(parsed, dict) else parsed
    if not isinstance(tools, list) or not tools or not all(map(_is_function, tools)):
        raise ConfigError(f"{path} holds no OpenAI `tools` array of functions")
    return tools


def _is_function(tool: JSON) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _unpack(file: str) -> list[JSONObject]:
    packed = files("proxy.demo").joinpath(file).read_bytes()
    tools: list[JSONObject] = orjson.loads(gzip.decompress(packed))
    return tools
