"""Thanks, greetings and a plain yes are told apart from requests, in any language."""

import pytest

from proxy.tools.smalltalk import is_consent, is_small_talk


@pytest.mark.parametrize(
    "text",
    [
        "thanks, that was really helpful",
        "Thank you so much!!",
        "hi there 👋",
        "Danke, das war sehr hilfreich!",
        "muchas gracias por tu ayuda",
        "Merci beaucoup, bonne journée",
        "ありがとうございます、とても助かりました",
        "谢谢你的帮助！",
        "고마워요",
        "спасибо большое",
        "🎉",
        "",
    ],
)
def test_small_talk_asks_for_nothing(text: str) -> None:
    """Politeness needs no tool."""
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "thanks, now list my storage accounts",
        "hi, what is the weather?",
        "明日の天気を教えて",
        "谢谢，请删除这个文件",
        "delete it",
        "what can you do about my disk",
        "thanks " * 60,
    ],
)
def test_requests_are_no_small_talk(text: str) -> None:
    """A request stays one however politely it begins."""
    assert not is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "Yes, please do it",
        "ok go ahead",
        "ja bitte",
        "sí, hazlo",
        "はい、お願いします",
        "好的",
    ],
)
def test_consent_says_yes(text: str) -> None:
    """A yes means whatever was proposed before it."""
    assert is_consent(text)


@pytest.mark.parametrize("text", ["yes, delete the disk", "no", "what is it?", "", "yes " * 60])
def test_everything_else_is_no_consent(text: str) -> None:
    """A yes with a request in it stands for itself."""
    assert not is_consent(text)
