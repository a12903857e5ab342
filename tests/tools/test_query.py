"""A query is spelled in the catalogue's own words before it is scored."""

from proxy.tools.query import Reader, Terms, Vocabulary
from proxy.tools.signals import NEUTRAL, Signals

VOCABULARY = Vocabulary(
    {
        "webapp": 2.0,
        "key": 1.5,
        "vault": 2.0,
        "mysql": 3.0,
        "sql": 1.0,
        "find": 1.0,
        "cluster": 2.0,
    },
    unknown=4.0,
    unspaced=0.0,
)


def _read(text: str, vocabulary: Vocabulary = VOCABULARY, signals: Signals | None = None) -> Terms:
    whole, _ = Reader(vocabulary, signals or Signals()).read(text, 0)
    return whole


def test_neighbours_are_joined() -> None:
    """`web app` finds tools that write `webapp`."""
    assert "webapp" in _read("my web app").weights


def test_compounds_are_split() -> None:
    """`keyvault` finds tools that write `key vault`."""
    assert {"key", "vault"} <= _read("open keyvault").weights.keys()


def test_brand_names_stay_whole_where_known() -> None:
    """A catalogue that knows MySQL is not asked for SQL."""
    assert _read("MySQL").weights.keys() == {"mysql"}
    assert _read("NoSQL").weights.keys() == {"no", "sql"}


def test_typos_are_mended() -> None:
    """One wrong, missing, doubled or swapped letter is forgiven."""
    for typo in ("clustar", "cluter", "cclusters", "clutser"):
        assert "cluster" in _read(typo).weights


def test_known_words_are_all_coverage() -> None:
    """A query in the catalogue's own words is covered, one without words is not."""
    assert _read("open vault").coverage < _read("vault key").coverage == 1.0
    assert _read("the ...").coverage == 0.0


def test_mended_words_are_not_coverage() -> None:
    """A guess is no sign that the catalogue speaks the query's language."""
    assert _read("clustar").coverage == 0.0


def test_filler_weighs_less() -> None:
    """Words of every request count less than words of this one."""
    weights = _read("vault find").weights
    assert weights["find"] < Signals().weak * weights["vault"]


def test_early_words_weigh_more() -> None:
    """What is asked for stands before where and how."""
    weights = _read("vault key").weights
    assert weights["vault"] > weights["key"]


def test_the_verb_is_looked_for_at_the_start() -> None:
    """A verb deep in the message is not the request's verb."""
    assert _read("delete the vault").verb is not None
    assert _read("one two three four five delete").verb is None


def test_neutral_signals_change_nothing() -> None:
    """Switched off, every word weighs the same."""
    weights = _read("find the vault", signals=NEUTRAL).weights
    assert set(weights.values()) == {1.0}


def test_foreign_words_are_read_as_english_ones() -> None:
    """A catalogue in English is asked in English, whatever the question's language."""
    assert "key" in _read("Wie lautet der Schlüssel?").weights
    assert "key" in _read("キーを教えて").weights


def test_foreign_words_that_the_catalogue_knows_stay() -> None:
    """A catalogue in the question's own language is left alone."""
    german = Vocabulary({"schlüssel": 2.0}, unknown=4.0)
    assert "key" not in _read("Wie lautet der Schlüssel?", german).weights
    japanese = Vocabulary({"キー": 2.0}, unknown=4.0, unspaced=1.0)
    assert "key" not in _read("キーを教えて", japanese).weights


def test_sentences_are_read_as_if_they_stood_alone() -> None:
    """What a message says besides does not change how one of its sentences is read."""
    texts = ["Open the keyvault.", "キーを教えて。", "Find my web app!"]
    _, sentences = Reader(VOCABULARY, Signals()).read(" ".join(texts), 10)
    assert sentences == [_read(text) for text in texts]


def test_a_message_is_read_to_its_last_sentence() -> None:
    """Those that are too many or too short to count by themselves still count in the whole."""
    whole, sentences = Reader(VOCABULARY, Signals()).read("My vault. Key\nMySQL!\n5", 2)
    assert whole.weights.keys() == {"vault", "key", "mysql", "5"}
    assert len(sentences) == 2


def test_a_message_of_one_sentence_has_no_parts() -> None:
    """Reading it twice would tell nothing new."""
    assert Reader(VOCABULARY, Signals()).read("Open the vault.", 10)[1] == []
