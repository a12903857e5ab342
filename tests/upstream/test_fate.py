"""Whose a call is: the client's, the gateway's, or the model's once more."""

import orjson
import pytest

from tests.upstream.desks import make_answer, make_call, make_desk, tool_names


def test_a_declared_tool_is_the_clients() -> None:
    """Its call is not validated: the client's own check decides."""
    desk = make_desk(predicted=["mail_send"])
    settled = desk.settle(make_answer(make_call("mail_send", {"wrong": 1})))
    assert [call.name for call in settled.calls] == ["mail_send"]
    assert not settled.again
    assert not desk.parked.before


@pytest.mark.item("calls/unloaded-valid")
def test_an_unloaded_tool_is_called_when_its_arguments_fit() -> None:
    """A listed tool needs no search when the model knows its arguments; slips are put right."""
    settled = make_desk().settle(make_answer(make_call("mail_delete", {"id": "42"})))
    assert settled.calls[0].arguments == '{"id":42}'
    assert not settled.again


@pytest.mark.item("calls/unloaded-repaired")
def test_an_unloaded_tool_with_wrong_arguments_is_repaired() -> None:
    """The model gets the error and the schema, and the tool is loaded."""
    desk = make_desk()
    settled = desk.settle(make_answer(make_call("mail_delete", {"message": "x"})))
    assert (settled.again, settled.context) == (True, "repair")
    reply = orjson.loads(orjson.loads(desk.body())["messages"][-1]["content"])
    assert reply["path"] == "$"
    assert reply["parameters"]["required"] == ["id"]
    assert "mail_delete" in tool_names(desk.body())


def test_repairs_end() -> None:
    """After two repairs of an unknown tool the client gets the call unchanged."""
    desk = make_desk()
    for _ in range(2):
        assert desk.settle(make_answer(make_call("reboot_everything", {"now": 1}))).again
    settled = desk.settle(make_answer(make_call("reboot_everything", {"now": 1})))
    assert settled.calls == (make_call("reboot_everything", {"now": 1}),)


@pytest.mark.item("calls/close-to-one", "calls/prefixed-name")
def test_a_mistaken_name_is_mapped_when_it_can_mean_only_one_tool() -> None:
    """Prefixes that models add are not an error when the arguments fit."""
    settled = make_desk().settle(make_answer(make_call("functions.mail_delete", {"id": 1})))
    assert [call.name for call in settled.calls] == ["mail_delete"]


def test_an_unknown_name_gets_similar_ones() -> None:
    """The hidden answer lists no whole catalogue, only what is close."""
    desk = make_desk()
    assert desk.settle(make_answer(make_call("mail-delete", {"id": "no"}))).again
    reply = orjson.loads(orjson.loads(desk.body())["messages"][-1]["content"])
    assert reply["similar"] == ["mail_delete"]
