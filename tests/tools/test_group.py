"""Which tools belong to the same server, judged by their names."""

from proxy.tools.group import learn_groups, local_name


def test_a_separator_that_hosts_use_names_the_server() -> None:
    """Two tools of one server are enough when the separator is unmistakable."""
    names = ["github__create_issue", "github__list_issues", "time__now"]
    assert learn_groups(names) == ("github", "github", "")


def test_a_shared_first_word_needs_three_members() -> None:
    """An underscore alone is weak evidence, so two names that share a word are no group."""
    names = ["sql_db_get", "sql_db_list", "sql_server_get", "acr_list", "acr_get"]
    assert learn_groups(names) == ("sql", "sql", "sql", "", "")


def test_a_verb_is_no_server() -> None:
    """`get_a, get_b, get_c` share what they do, not whose they are."""
    assert learn_groups(["get_a", "get_b", "get_c"]) == ("", "", "")


def test_the_longest_shared_prefix_wins() -> None:
    """Claude Code's `mcp__server__tool` groups by server, not by `mcp`."""
    names = ["mcp__git__log", "mcp__git__diff", "mcp__slack__post", "mcp__slack__read"]
    assert learn_groups(names) == ("mcp__git", "mcp__git", "mcp__slack", "mcp__slack")


def test_a_server_may_stand_behind_the_tool() -> None:
    """LibreChat appends the server: `<tool>_mcp_<server>`."""
    names = ["list_issues_mcp_github", "create_issue_mcp_github"]
    assert learn_groups(names) == ("github", "github")
    assert local_name("list_issues_mcp_github", "github") == "list_issues"


def test_local_names_lose_group_and_separator() -> None:
    """Below its group a tool is listed by what is left of its name."""
    assert local_name("github__create_issue", "github") == "create_issue"
    assert local_name("lonely", "") == "lonely"


def test_empty_catalogue_has_no_groups() -> None:
    """Nothing in, nothing out."""
    assert learn_groups([]) == ()
