"""Which schemas travel with a turn before anyone asked for them."""

from proxy.settings import Prediction
from proxy.tools.predict import Cue, Predicted, predict
from proxy.tools.rank import Document, build_lexical

INDEX = build_lexical(
    [
        Document("kv_secret_get", "kv", "Read a secret of a key vault.", None),
        Document("kv_secret_set", "kv", "Store a secret in a key vault.", None),
        Document("kv_audit", "kv", "Audit log entries.", None),
        Document("weather_now", "", "Current weather of a city.", None),
        Document("mail_send", "", "Send an email.", None),
    ]
)


def _predict(newest: str, *, called: tuple[str, ...] = (), **past: str) -> Predicted:
    cue = Cue(newest, past.get("previous", ""), past.get("assistant", ""), called, results=())
    return predict(INDEX, cue, Prediction(), {})


def test_the_tool_of_the_request_comes_first() -> None:
    """The newest message decides."""
    assert _predict("what's the weather in Oslo").names[0] == "weather_now"


def test_named_tools_are_always_loaded() -> None:
    """Spelling out a tool's name loads it whatever else ranks."""
    predicted = _predict("no need for weather, use mail_send")
    assert predicted.mentioned == ("mail_send",)
    assert predicted.names[0] == "mail_send"


def test_a_name_inside_a_longer_word_is_no_mention() -> None:
    """Only whole identifiers count as mentions."""
    assert _predict("open my_mail_sender").mentioned == ()


def test_yes_do_it_means_what_was_just_proposed() -> None:
    """A bare confirmation is read together with the reply it confirms."""
    predicted = _predict("yes, do it", assistant="Shall I store the secret in the key vault?")
    assert predicted.names[0] == "kv_secret_set"


def test_siblings_of_used_tools_are_favoured() -> None:
    """Tools of the server at work are likelier to be next."""
    names = _predict("show me the secret", called=("kv_secret_get",)).names
    assert "kv_audit" in names


def test_often_called_tools_break_ties() -> None:
    """Use is evidence, but a weak one."""
    cue = Cue("secret of the key vault", "", "", (), ())
    usage = {"kv_secret_set": 50}
    assert predict(INDEX, cue, Prediction(usage_weight=0.5), usage).names[0] == "kv_secret_set"


def test_nothing_in_common_predicts_nothing() -> None:
    """Without a single shared word the ranking keeps quiet."""
    predicted = _predict("ありがとうございました")
    assert (predicted.names, predicted.reason) == ((), "no match")


def test_the_same_cue_gives_the_same_shortlist() -> None:
    """Predictions are a pure function of their arguments."""
    assert _predict("store a secret") == _predict("store a secret")
