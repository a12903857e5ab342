"""Reading what a request wants."""

from proxy.upstream.standin.words import TAIL_WEIGHT, content, joined, split, translate, weigh


def test_names_fall_apart_into_lower_case_singulars() -> None:
    """A camelCase name and a snake_case one read the same."""
    assert split("listStorageAccounts") == split("list_storage-accounts")
    assert split("entries boxes address") == ["entry", "box", "address"]


def test_function_words_do_not_count() -> None:
    """A sentence is what is left without them."""
    assert content("Could you please show me all of my disks?") == ["show", "disk"]


def test_neighbours_also_count_as_one_word() -> None:
    """So that `key vault` finds `keyvault_secret_get`."""
    assert "keyvault" in joined(["key", "vault"])


def test_long_and_short_names_are_one_word() -> None:
    """As tools are often named by abbreviations."""
    assert {"vm", "db"} <= weigh("the virtual machine of the database").keys()


def test_where_weighs_less_than_what() -> None:
    """The words after the first preposition describe a place."""
    weights = weigh("List the blobs in the container")
    assert weights["container"] == TAIL_WEIGHT * weights["blob"]


def test_actions_with_one_meaning_are_one_word() -> None:
    """Removing is deleting."""
    assert weigh("remove the disk") == weigh("delete the disk")


def test_japanese_is_read_without_spaces() -> None:
    """The longest known words are cut out of the run."""
    assert translate("ストレージアカウントの一覧を見せて").split() == [
        "storage", "account", "list", "show",
    ]  # fmt: skip


def test_other_languages_are_read_word_by_word() -> None:
    """Punctuation next to a word does not hide it."""
    assert translate("Zeige die Speicherkonten!") == "show die storage account"
