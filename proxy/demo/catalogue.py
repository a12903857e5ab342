"""Nothing comes in; the 235 real tools of the demo come out."""

import gzip
from importlib.resources import files

import orjson

from proxy.wire import JSONObject

FILE = "azure_235_tools.json.gz"


def load_tools() -> list[JSONObject]:
    """The catalogue as an OpenAI `tools` array; 113,941 o200k tokens when sent compactly."""
    packed = files("proxy.demo").joinpath(FILE).read_bytes()
    tools: list[JSONObject] = orjson.loads(gzip.decompress(packed))
    return tools
