"""Files with question wording in; questions ready to be asked out.

The built-in wording is in `config/questions/`. An operator's folder replaces it question by
question; a question that does not exist or is written wrongly is an error at start.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proxy.errors import ConfigError
from proxy.judge.fit import free_label
from proxy.judge.questions import Choice, Noul
from proxy.wire import JSON

_PLACE = re.compile(r"\{(\w+)\}")


class Wording(BaseModel):
    """How one question is worded; `none` describes the option that means "no other fits"."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    type: Literal["noul", "choice"]
    instructions: str = Field(min_length=1)
    yes: str | None = Field(None, alias="true")
    no: str | None = Field(None, alias="false")
    options: dict[str, str] = {}
    none: str | None = None

    @property
    def places(self) -> frozenset[str]:
        """The names of the `{name}` places in the instructions."""
        return frozenset(_PLACE.findall(self.instructions))

    def noul(self, embedded: str | None = None, **fill: str) -> Noul:
        """The yes/no question, with `{name}` places filled in."""
        return Noul(_fill(self.instructions, fill), self.yes, self.no, embedded)

    def choice(
        self,
        options: Mapping[str, str | None] | None = None,
        prior: Mapping[str, float] | None = None,
    ) -> Choice:
        """The choice between these options, or between its own."""
        labels: dict[str, str | None] = dict(options if options is not None else self.options)
        none = None
        if self.none is not None:
            none = free_label(labels)
            labels[none] = self.none
        return Choice(self.instructions, labels, none, prior)


Wordings = Mapping[str, Wording]


def load_wordings(folder: Path | None = None) -> Wordings:
    """The built-in wording, replaced where the operator's folder has its own; or ConfigError."""
    known = dict(_read_folder(built_in_folder()))
    if folder is None:
        return known
    for name, wording in _read_folder(folder):
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"{folder}: no question is called {name}{hint}")
        if wording.type != known[name].type:
            raise ConfigError(f"{folder}: {name} must be a {known[name].type}")
        strange = wording.places - known[name].places
        if strange:
            raise ConfigError(f"{folder}: {name}: nothing fills {{{min(strange)}}} in")
        known[name] = wording
    return known


def built_in_folder() -> Path:
    """Where the wording is: inside the installed package, else beside it in the repository."""
    package = Path(__file__).parents[1]
    packaged = package / "questions"
    return packaged if packaged.is_dir() else package.parent / "config" / "questions"


def _read_folder(folder: Path) -> Iterator[tuple[str, Wording]]:
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise ConfigError(f"{folder}: there is no question wording (*.yaml)")
    for file in files:
        for name, value in _read_file(file).items():
            try:
                yield str(name), Wording.model_validate(value)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                place = ".".join(str(part) for part in (name, *first["loc"]))
                raise ConfigError(f"{file}: {place}: {first['msg']}") from None


def _read_file(file: Path) -> Mapping[JSON, JSON]:
    try:
        found = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{file}: cannot be read as YAML ({type(error).__name__})") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{file}: must be a mapping of questions")
    return found


def _fill(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text
