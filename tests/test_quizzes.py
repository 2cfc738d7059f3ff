"""The quizzes: five questions a chapter, one right answer each, a reason for every answer."""

import json
import re

import pytest
from conftest import ROOT
from quizzes import as_markdown, read_quiz

FILES = sorted((ROOT / "notebooks" / "quizzes").glob("*.json"))
each_quiz = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def check_quiz(questions):
    """Raise an AssertionError that names what is wrong with a quiz."""
    assert len(questions) == 5, f"{len(questions)} questions"
    for question in questions:
        assert set(question) == {"question", "answers"}, sorted(question)
        assert len(question["answers"]) >= 3, question["question"]
        right = []
        for answer in question["answers"]:
            assert set(answer) == {"answer", "correct", "feedback"}, answer
            assert isinstance(answer["correct"], bool), answer
            right.append(answer["correct"])
            assert len(answer["feedback"].split()) >= 5, f"no reason for: {answer['answer']}"
        assert right.count(True) == 1, f"not one right answer: {question['question']}"
        texts = [question["question"]] + [a["answer"] for a in question["answers"]]
        assert all(texts), question
        assert len(set(texts)) == len(texts), question["question"]


@pytest.mark.notebook
def test_each_chapter_shows_its_quiz_and_no_quiz_is_left_over():
    shown = {}
    for chapter in sorted((ROOT / "notebooks").glob("[0-9]*.md")):
        found = re.findall(r"^```\{quiz\} (.+)\n```$", chapter.read_text("utf-8"), re.MULTILINE)
        shown[chapter.stem[:2]] = found
    assert shown == {file.stem: [f"quizzes/{file.name}"] for file in FILES}


@each_quiz
def test_quiz_is_sound(file):
    check_quiz(read_quiz(file))


@each_quiz
def test_the_right_answer_stands_in_every_place(file):
    places = [[a["correct"] for a in q["answers"]].index(True) for q in read_quiz(file)]
    assert set(places) == {0, 1, 2}


def test_the_right_answer_is_not_given_away_by_its_length():
    questions = [question["answers"] for file in FILES for question in read_quiz(file)]
    longest = [max(answers, key=lambda answer: len(answer["answer"])) for answers in questions]
    assert sum(answer["correct"] for answer in longest) < len(questions) / 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda quiz: quiz.pop(),
        lambda quiz: quiz[0].pop("question"),
        lambda quiz: quiz[1]["answers"][0].pop("feedback"),
        lambda quiz: quiz[1]["answers"][0].update(feedback="No."),
        lambda quiz: [answer.update(correct=True) for answer in quiz[2]["answers"]],
        lambda quiz: [answer.update(correct=False) for answer in quiz[2]["answers"]],
        lambda quiz: quiz[3]["answers"].append(dict(quiz[3]["answers"][0])),
        lambda quiz: quiz[4]["answers"].pop(),
    ],
)
def test_a_faulty_quiz_is_noticed(spoil):
    quiz = json.loads(FILES[0].read_text(encoding="utf-8"))
    spoil(quiz)
    with pytest.raises((AssertionError, KeyError)):
        check_quiz(quiz)


def test_markdown_has_a_verdict_for_each_answer():
    quiz = read_quiz(FILES[0])
    text = as_markdown(quiz)
    answers = [answer for question in quiz for answer in question["answers"]]
    assert text.count("```{dropdown} ") == len(answers)
    assert text.count("**Right.**") == len(quiz)
    assert text.count("**Not quite.**") == len(answers) - len(quiz)
    assert all(answer["feedback"] in text for answer in answers)
