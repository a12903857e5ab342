"""Which schemas travel with a turn before anyone asked for them."""

import pytest

from proxy.settings import Prediction
from proxy.tools.predict import Cue, Predicted, order, predict
from proxy.tools.rank import Document, Hit, Scores, build_lexical

DOCUMENTS = [
    Document("kv_secret_get", "kv", "Read a secret of a key vault.", None),
    Document("kv_secret_set", "kv", "Store a secret in a key vault.", None),
    Document("kv_audit", "kv", "Audit log entries.", None),
    Document("weather_now", "", "Current weather of a city.", None),
    Document("mail_send", "", "Send an email.", None),
    *(Document(f"other_{n}", "", f"Does thing number{n}.", None) for n in range(20)),
]
INDEX = build_lexical(DOCUMENTS)


class Fixed:
    """An index that answers every query with the same scores."""

    documents = DOCUMENTS

    def __init__(self, values: list[float], closeness: float) -> None:
        self.twins: dict[int, int] = {}
        self._scores = Scores(values + [0.0] * (len(DOCUMENTS) - len(values)), 0.0, closeness)

    def rank(self, query: str, limit: int) -> list[Hit]:
        raise AssertionError("prediction needs all scores")

    def score(self, query: str) -> Scores:
        return self._scores


def _predict(
    newest: str,
    *,
    called: tuple[str, ...] = (),
    results: tuple[str, ...] = (),
    assistant: str = "",
) -> Predicted:
    cue = Cue(newest, "", assistant, called, results)
    return predict(INDEX, cue, Prediction(), {})


def _cut(values: list[float], closeness: float = 0.9) -> Predicted:
    cue = Cue("please arrange seven purple things", "", "", (), ())
    return predict(Fixed(values, closeness), cue, Prediction(), {})


def test_a_clear_request_gets_one_tool() -> None:
    """When one tool stands out, no other schema is paid for."""
    predicted = _predict("what's the current weather in the city of Oslo")
    assert (predicted.names, predicted.reason) == (("weather_now",), "clear")


def test_close_tools_widen_the_shortlist() -> None:
    """Six tools that are equally likely all travel along."""
    predicted = _cut([5.0] * 6)
    assert (len(predicted.names), predicted.reason) == (6, "close")


def test_an_unclear_ranking_is_cut() -> None:
    """Twenty equally likely tools are no reason to send twenty."""
    predicted = _cut([5.0] * 20)
    assert (len(predicted.names), predicted.reason) == (3, "unclear")


def test_a_long_schema_must_be_likelier() -> None:
    """A tool of five thousand tokens does not travel along on a slight chance."""
    huge = Document("kv_secret_set", "", "Store a secret in a key vault.", b" " * 24_000)
    index = build_lexical([DOCUMENTS[0], huge, *DOCUMENTS[3:]])
    cue = Cue("read a secret of some key vault", "", "", (), ())
    assert predict(index, cue, Prediction(), {}).names == ("kv_secret_get",)


def test_far_from_every_tool_means_none() -> None:
    """A message that means nothing like any tool gets none."""
    assert _cut([5.0], closeness=0.1).reason == "no tool needed"


def test_named_tools_are_always_loaded() -> None:
    """Spelling out a tool's name loads it whatever else ranks."""
    predicted = _predict("no need for weather, use mail_send")
    assert predicted.mentioned == ("mail_send",)
    assert predicted.names[0] == "mail_send"


@pytest.mark.item("prediction/mention-in-word")
@pytest.mark.item("prediction/mention-case")
def test_a_mention_may_be_written_in_any_case() -> None:
    """MAIL_SEND is mail_send."""
    assert _predict("please use MAIL_SEND").mentioned == ("mail_send",)


@pytest.mark.item("prediction/shared-word")
def test_one_word_of_eight_servers_loads_no_more_than_the_widest() -> None:
    """A word that every server has a tool for is no mention, and never a flood."""
    servers = [Document(f"s{n}__search", f"s{n}", f"Search source{n}.", None) for n in range(8)]
    index = build_lexical([*servers, *DOCUMENTS])
    predicted = predict(index, Cue("search", "", "", (), ()), Prediction(), {})
    assert predicted.mentioned == ()
    assert len(predicted.names) <= Prediction().widest


@pytest.mark.item("prediction/empty-message")
def test_an_empty_message_predicts_nothing() -> None:
    """Without words there is nothing to foresee, whatever was said before."""
    assert _predict("", assistant="Shall I store the secret in the key vault?").names == ()


def test_a_name_inside_a_longer_word_is_no_mention() -> None:
    """Only whole identifiers count as mentions."""
    assert _predict("open my_mail_sender").mentioned == ()


@pytest.mark.item("prediction/mention-cjk")
def test_a_name_beside_unspaced_writing_is_a_mention() -> None:
    """Japanese puts no space around the name it mentions."""
    assert _predict("mail_sendを使って").mentioned == ("mail_send",)


@pytest.mark.item("prediction/thanks")
@pytest.mark.parametrize(
    "text", ["thanks, that was great", "merci !", "ありがとうございます", "🎉"]
)
def test_small_talk_predicts_nothing(text: str) -> None:
    """Thanks for a weather report do not ask for another."""
    predicted = _predict(text, assistant="The current weather of the city is fine.")
    assert (predicted.names, predicted.reason) == ((), "small talk")


@pytest.mark.item("prediction/yes")
def test_yes_do_it_means_what_was_just_proposed() -> None:
    """A bare confirmation is read together with the reply it confirms."""
    predicted = _predict("yes, do it", assistant="Shall I store the secret in the key vault?")
    assert predicted.names[0] == "kv_secret_set"


def test_siblings_of_used_tools_come_next() -> None:
    """After one tool of a server, the others of that server are likeliest."""
    cue = Cue("read the secret and check it", "", "", ("kv_secret_get",), ("kv_secret_get",))
    names = [name for name, _ in order(INDEX, cue, Prediction(), {})]
    assert set(names[:2]) == {"kv_secret_set", "kv_audit"}
    assert "kv_secret_get" not in names


def test_a_new_clear_request_forgets_the_last_server() -> None:
    """Changing the subject is not held back by what was used before."""
    predicted = _predict("current weather of the city Oslo today", called=("kv_secret_get",))
    assert predicted.names == ("weather_now",)


def test_results_of_a_single_request_predict_nothing() -> None:
    """One request, one tool: its result needs no further schemas."""
    predicted = _predict("read the secret", called=("kv_secret_get",), results=("kv_secret_get",))
    assert (predicted.names, predicted.reason) == ((), "one step")


def test_often_called_tools_break_ties() -> None:
    """Use is evidence, but a weak one."""
    cue = Cue("secret of the key vault", "", "", (), ())
    usage = {"kv_secret_set": 50}
    assert predict(INDEX, cue, Prediction(usage_weight=0.5), usage).names[0] == "kv_secret_set"


def test_nothing_in_common_predicts_nothing() -> None:
    """Without a single shared word a lexical ranking keeps quiet."""
    predicted = _predict("翻訳してください")
    assert (predicted.names, predicted.reason) == ((), "no match")


def test_the_same_cue_gives_the_same_shortlist() -> None:
    """Predictions are a pure function of their arguments."""
    assert _predict("store a secret") == _predict("store a secret")


def test_an_empty_catalogue_predicts_nothing() -> None:
    """No tools, no guesses."""
    cue = Cue("anything at all", "", "", (), ())
    assert predict(build_lexical([]), cue, Prediction(), {}).names == ()
