"""What an index stores so that a query is a few additions."""

from proxy.tools.document import Document, read_fields
from proxy.tools.postings import find_acronyms, find_rarity, post_terms
from proxy.tools.signals import Signals

DOCUMENTS = [
    Document("vault_get", "", "Read a Key Vault. Well-Architected Framework.", None),
    Document("disk_get", "", "Read a disk.", None),
]
FIELDS = read_fields(DOCUMENTS, Signals())


def test_rare_terms_are_worth_more() -> None:
    """A word of one document tells more than a word of both."""
    postings = post_terms(FIELDS)
    assert postings["vault"].rarity > postings["get"].rarity > 0
    assert find_rarity(0, 10) > find_rarity(9, 10)


def test_names_are_worth_more_than_descriptions() -> None:
    """The same word counts more where a tool is named after it."""
    postings = post_terms(FIELDS)
    assert postings["disk"].weights[1] > postings["read"].weights[1]


def test_shares_of_a_name_add_up() -> None:
    """A query that says every word of a name covers all of it."""
    postings = post_terms(FIELDS).values()
    shares = [posting.names[0] for posting in postings if 0 in posting.names]
    assert abs(sum(shares) - 1.0) < 1e-9


def test_initials_of_titles_and_names() -> None:
    """Capitalised phrases and names can be asked for by their initials."""
    acronyms = find_acronyms(DOCUMENTS, post_terms(FIELDS))
    assert acronyms["waf"] == acronyms["kv"] == acronyms["vg"] == [0]
    assert acronyms["dg"] == [1]
