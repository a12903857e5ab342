"""What searches ended in moves the ranking of that tenant, a little, and fades."""

from proxy.settings import Prediction
from proxy.tools.document import Document
from proxy.tools.lessons import HALF_LIFE, PER_TENANT, LearnedIndex, Lessons
from proxy.tools.predict import Cue, predict
from proxy.tools.rank import Hit, Index, Scores, build_lexical

DOCUMENTS = (
    Document("finance_report", "finance", "Quarterly figures of the company.", None),
    Document("run_query", "sql", "Runs a statement.", None),
    Document("mail_send", "mail", "Sends an e-mail about figures.", None),
)


def _learned(lessons: Lessons, index: Index | None = None, tenant: str = "a") -> LearnedIndex:
    return LearnedIndex(
        index or build_lexical(DOCUMENTS), lambda query: lessons.recall(tenant, query)
    )


def _names(index: Index, query: str) -> list[str]:
    return [index.documents[hit.position].name for hit in index.rank(query, 5)]


def test_a_generic_tool_is_found_by_what_it_was_used_for() -> None:
    """Its description names no topic, but a search for one ended in its call."""
    lessons = Lessons()
    index = _learned(lessons)
    assert _names(index, "invoices of overdue customers") == []
    lessons.learn("a", "overdue invoices", "run_query")
    assert _names(index, "invoices of overdue customers") == ["run_query"]
    assert _names(index, "send an e-mail") == ["mail_send"]


def test_one_lesson_does_not_outrank_a_good_match() -> None:
    """It brings the tool onto the list; the words of the catalogue still lead."""
    lessons = Lessons()
    lessons.learn("a", "quarterly figures", "run_query")
    assert _names(_learned(lessons), "quarterly figures")[0] == "finance_report"
    assert "run_query" in _names(_learned(lessons), "quarterly figures")


def test_a_spelled_out_name_stays_first() -> None:
    """However often searches ended elsewhere."""
    lessons = Lessons()
    for _ in range(50):
        lessons.learn("a", "finance report", "run_query")
    assert _names(_learned(lessons), "finance_report")[0] == "finance_report"


ALIKE = tuple(
    Document(f"{kind}_show", kind, f"Shows the report of a {kind}.", None)
    for kind in ("disk", "lake", "node", "pool", "ring", "vault")
)


def _place(lessons: Lessons, query: str, tool: str) -> int | None:
    """Where a tool stands among others whose scores are nearly the same."""
    names = _names(_learned(lessons, build_lexical((*ALIKE, DOCUMENTS[1]))), query)
    return names.index(tool) if tool in names else None


def test_a_question_that_ended_so_again_and_again_is_answered_so() -> None:
    """Among scores that are alike, close to the best is no place; a sure lesson has one."""
    lessons, asked = Lessons(), "report wibble wobble"
    places = [_place(lessons, asked, "run_query")]
    for _ in range(3):
        lessons.learn("a", asked, "run_query")
        places.append(_place(lessons, asked, "run_query"))
    assert places[:2] == [None, None]
    assert all(place is not None and place <= 1 for place in places[2:])
    assert _place(lessons, "report of the wibble wobble", "run_query") in {0, 1}
    assert _place(lessons, "report wibble", "run_query") is None


def test_a_wrong_habit_takes_no_first_place() -> None:
    """However often: the best match by words stays first, and only one place is lost."""
    lessons, asked = Lessons(), "report of the vault"
    for _ in range(9):
        lessons.learn("a", asked, "run_query")
    index = _learned(lessons, build_lexical((*ALIKE, DOCUMENTS[1])))
    plain = _names(build_lexical((*ALIKE, DOCUMENTS[1])), asked)
    assert _names(index, asked) == [plain[0], "run_query", *plain[1:4]]


def test_two_habits_of_one_question_stand_side_by_side() -> None:
    """The firmer one first."""
    lessons, asked = Lessons(), "report wibble wobble"
    for tool in ("run_query", "vault_show", "vault_show", "run_query", "run_query"):
        lessons.learn("a", asked, tool)
    index = _learned(lessons, build_lexical((*ALIKE, DOCUMENTS[1])))
    assert {"run_query", "vault_show"} <= set(_names(index, asked)[:3])


def test_a_sure_lesson_of_the_only_tool() -> None:
    """There is nobody to stand behind."""
    lessons = Lessons()
    for _ in range(3):
        lessons.learn("a", "wibble", "run_query")
    assert _names(_learned(lessons, build_lexical(DOCUMENTS[1:2])), "wibble") == ["run_query"]


def test_tenants_learn_apart() -> None:
    """What one tenant's model asked reaches no other's ranking."""
    lessons = Lessons()
    lessons.learn("a", "overdue invoices", "run_query")
    assert lessons.recall("b", "overdue invoices") == {}


def test_confirmed_lessons_weigh_more_and_old_ones_less() -> None:
    """Use is counted in lessons, not in hours, so the same state gives the same ranking."""
    lessons = Lessons()
    lessons.learn("a", "overdue invoices", "run_query")
    once = lessons.recall("a", "overdue invoices")["run_query"]
    lessons.learn("a", "Overdue INVOICES", "run_query")
    twice = lessons.recall("a", "overdue invoices")["run_query"]
    for number in range(HALF_LIFE):
        lessons.learn("a", f"topic{number}", "mail_send")
    assert 0.7 < once < 0.75
    assert twice > once
    assert lessons.recall("a", "overdue invoices")["run_query"] < twice


def test_questions_must_be_alike() -> None:
    """A word that a long message happens to share is no lesson, nor are words that all say."""
    lessons = Lessons()
    lessons.learn("a", "overdue invoices", "run_query")
    long = " ".join(f"word{number}" for number in range(40))
    assert lessons.recall("a", f"overdue invoices {long}") == {}
    lessons.learn("a", "find the latest", "mail_send")
    assert lessons.recall("a", "find the latest") == {}


def test_the_likest_lesson_of_a_tool_counts() -> None:
    """Several lessons of one tool are not added up."""
    lessons = Lessons()
    lessons.learn("a", "overdue invoices", "run_query")
    lessons.learn("a", "overdue customers invoices", "run_query")
    once = lessons.recall("a", "overdue invoices customers")["run_query"]
    assert once < 0.75


def test_memory_is_bounded() -> None:
    """The oldest lessons leave, of one tenant and of all together; empty tenants leave too."""
    lessons = Lessons()
    for number in range(PER_TENANT + 1):
        lessons.learn("a", f"topic{number}", "t")
    assert lessons.recall("a", "topic0") == {}
    assert lessons.recall("a", "topic1")
    small = Lessons(max_bytes=1_000)
    for tenant in "abc":
        small.learn(tenant, "overdue invoices", "run_query")
    assert small.bytes <= 1_000
    assert small.recall("a", "overdue invoices") == {}
    assert small.recall("c", "overdue invoices")
    for word in ("receipts", "orders", "refunds"):
        small.learn("c", word, "run_query")
    assert small.recall("c", "overdue invoices") == {}
    assert small.recall("c", "refunds")


def test_a_lesson_larger_than_all_memory_is_forgotten() -> None:
    """Nothing is kept, nothing breaks."""
    lessons = Lessons(max_bytes=1)
    lessons.learn("a", "overdue invoices", "run_query")
    assert lessons.bytes == 0
    assert lessons.recall("a", "overdue invoices") == {}


def test_tools_that_are_gone_are_passed_over() -> None:
    """A lesson outlives a catalogue."""
    lessons = Lessons()
    lessons.learn("a", "overdue invoices", "removed")
    index = _learned(lessons)
    assert _names(index, "overdue invoices") == []
    assert index.twins == {}


def test_a_lesson_ends_a_silence() -> None:
    """Where meaning says that no tool is needed, having needed one says more."""

    class Far:
        """A ranking by meaning that finds nothing near."""

        documents = DOCUMENTS
        twins = build_lexical(DOCUMENTS).twins

        def rank(self, query: str, limit: int) -> list[Hit]:
            raise AssertionError

        def score(self, query: str) -> Scores:
            return Scores([-0.5, -0.5, 0.4], 0.0, 0.1)

    lessons = Lessons()
    cue = Cue("overdue invoices", "", "", (), ())
    assert predict(_learned(lessons, Far()), cue, Prediction(), {}).names == ()
    lessons.learn("a", "overdue invoices", "run_query")
    assert "run_query" in predict(_learned(lessons, Far()), cue, Prediction(), {}).names


def test_forgotten_lessons_leave_no_words_behind() -> None:
    """What pushed a lesson out is found, the lesson itself is not, whatever words they share."""
    lessons = Lessons()
    lessons.learn("a", "overdue invoices", "run_query")
    for number in range(PER_TENANT):
        lessons.learn("a", f"overdue topic{number}", f"tool{number}")
    assert "run_query" not in lessons.recall("a", "overdue invoices")
    assert lessons.recall("a", "overdue topic7").keys() >= {"tool7"}
