"""Kinds of request that plain word counting gets wrong."""

from proxy.tools.lexical import LexicalIndex, build_lexical
from proxy.tools.rank import Document


def _index(*tools: tuple[str, str]) -> LexicalIndex:
    return build_lexical([Document(name, "", text, None) for name, text in tools])


def _first(index: LexicalIndex, query: str) -> str:
    return index.documents[index.rank(query, 1)[0].position].name


SHARES = _index(
    ("share_create", "Create a managed file share with new settings."),
    ("share_update", "Update an existing managed file share."),
    ("share_delete", "Delete a managed file share."),
    ("share_get", "Get a managed file share."),
)


def test_the_verb_decides_between_siblings() -> None:
    """Modify means update, show means get, though neither word occurs."""
    assert _first(SHARES, "Modify file share x") == "share_update"
    assert _first(SHARES, "Remove file share x") == "share_delete"
    assert _first(SHARES, "Show file share x") == "share_get"


def test_word_order_decides_between_mirror_images() -> None:
    """Speech to text is not text to speech."""
    index = _index(
        ("tts", "Convert text to speech as an audio file."),
        ("stt", "Recognise audio: convert speech to text from a file."),
    )
    assert _first(index, "convert speech to text") == "stt"
    assert _first(index, "convert text to speech") == "tts"


def test_initials_find_what_they_stand_for() -> None:
    """An acronym that is no word of the catalogue is read as initials."""
    index = _index(
        ("guide", "Well-Architected Framework advice."), ("vm_get", "Get a virtual machine.")
    )
    assert _first(index, "waf advice") == "guide"
    assert _first(index, "waf") == "guide"


def test_common_words_decide_only_between_leaders() -> None:
    """In a large catalogue a rare word finds, and a common one orders, the candidates."""
    many = [(f"thing_{n}", f"Get thing number{n}.") for n in range(6_000)]
    index = _index(*many, ("zebra_set", "Set the zebra."), ("zebra_get", "Get the zebra."))
    assert _first(index, "get zebra") == "zebra_get"
    assert len(index.rank("get thing number17", 5)) == 5
