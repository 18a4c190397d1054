"""QTI 2.1: every item is well-formed and whole by the rules of the specification, and answers as the quiz answers.

The schemas of the specification are not on any package index. QTI_SCHEMAS may name a folder that holds them, with
`qtiv2p1/imsqti_v2p1.xsd` and `imscp_v1p1.xsd`; then every file is validated by them, too.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from transformer_lib.course.quiz.bank import QUESTIONS
from transformer_lib.course.quiz.model import Choice, Number, Option
from transformer_lib.course.teaching import exam, qti

pytestmark = pytest.mark.fast

Q, P = f"{{{qti.QTI}}}", f"{{{qti.PACKAGE}}}"
# Children of an assessmentItem in the order of the specification's table 8.1, and what may stand in a text.
ORDER = ["responseDeclaration", "outcomeDeclaration", "itemBody", "responseProcessing", "modalFeedback"]
INLINE = {"code", "em"}


def parsed(question) -> Element:
    return ElementTree.fromstring(qti.item(question))


def local(element: Element) -> str:
    return element.tag.removeprefix(Q)


def words(element: Element) -> str:
    """The text of an element as the quiz wrote it: code in backticks, emphasis in asterisks."""
    sign = {"code": "`", "em": "*"}.get(local(element), "")
    inner = "".join([element.text or "", *(words(child) + (child.tail or "") for child in element)])
    return f"{sign}{inner}{sign}"


def outcome(item: Element, response: str) -> dict[str, str]:
    """The outcomes of an item for a response, by its responseProcessing: an interpreter of the few rules it uses."""
    found = {"SCORE": "0"}
    correct = item.find(f"{Q}responseDeclaration/{Q}correctResponse/{Q}value").text

    def value(rule: Element) -> str:
        name = local(rule)
        return {"variable": response, "correct": correct}.get(name, rule.text)

    def holds(test: Element) -> bool:
        one, other = (value(each) for each in test)
        if local(test) == "match":
            return one == other
        below, above = map(float, test.get("tolerance").split())
        assert test.get("toleranceMode") == "absolute"
        return float(other) - below <= float(one) <= float(other) + above

    def follow(rules) -> None:
        for rule in rules:
            if local(rule) == "setOutcomeValue":
                found[rule.get("identifier")] = value(rule[0])
            elif local(rule) == "responseCondition":
                branch = next((each for each in rule if local(each) == "responseElse" or holds(each[0])), ())
                follow(branch)
            else:
                assert local(rule) in ("match", "equal"), rule.tag

    follow(item.find(f"{Q}responseProcessing"))
    return found


def said(item: Element, response: str) -> tuple[bool, str]:
    """Whether a response is right, and the feedback that is shown."""
    outcomes = outcome(item, response)
    shown = [each for each in item.findall(f"{Q}modalFeedback") if each.get("identifier") == outcomes["FEEDBACK"]]
    assert len(shown) == 1 and shown[0].get("showHide") == "show"
    return outcomes["SCORE"] == "1", words(shown[0])


def responses(question) -> Iterator[tuple[str, str]]:
    """Yield (what the platform hears, what the quiz hears)."""
    if isinstance(question, Choice):
        yield from zip(qti.LETTERS, question.letters, strict=False)
    else:
        for number in (question.value, *(near for near, _ in question.near), 12345.0, -7.0):
            for off in (0.0, 0.4 * question.tolerance, -0.4 * question.tolerance):
                yield f"{number + off!r}", number + off


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.id)
def test_a_platform_answers_as_the_quiz_answers(question):
    item = parsed(question)
    for heard, answer in responses(question):
        reply = question.reply(answer)
        assert said(item, heard) == (reply.right, reply.why), heard


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.id)
def test_an_item_is_whole_by_the_rules_of_the_specification(question):
    item = parsed(question)
    assert item.tag == f"{Q}assessmentItem" and {"identifier", "title", "adaptive", "timeDependent"} <= set(item.keys())
    places = [ORDER.index(local(child)) for child in item]
    assert places == sorted(places) and set(places) == set(range(len(ORDER)))
    [interaction] = [each for each in item.find(f"{Q}itemBody").iter() if each.get("responseIdentifier")]
    assert interaction.get("responseIdentifier") == "RESPONSE"
    declared = item.find(f"{Q}responseDeclaration").get("baseType")
    assert (local(interaction), declared) == (
        ("choiceInteraction", "identifier") if isinstance(question, Choice) else ("textEntryInteraction", "float")
    )
    outcomes = {each.get("identifier") for each in item.findall(f"{Q}outcomeDeclaration")}
    assert {each.get("outcomeIdentifier") for each in item.findall(f"{Q}modalFeedback")} <= outcomes
    names = [each.get("identifier") for each in item.findall(f"{Q}modalFeedback")]
    assert len(names) == len(set(names))
    for element in item.iter():
        if local(element) in ("prompt", "simpleChoice", "modalFeedback"):
            assert {local(child) for child in element} <= INLINE


def test_the_texts_of_a_choice_are_those_of_the_quiz():
    for question in QUESTIONS:
        item = parsed(question)
        if isinstance(question, Choice):
            assert words(item.find(f".//{Q}prompt")) == question.prompt
            options = [words(each) for each in item.iter(f"{Q}simpleChoice")]
            assert options == [option.text for option in question.options]
        else:
            assert words(item.find(f"{Q}itemBody/{Q}p")) == question.prompt


def test_a_package_names_each_of_its_files_once_and_the_test_asks_them_in_order():
    questions = exam.drawn(["03", "04"], 6, 7)
    data = qti.package(questions, "Weeks 3 & 4")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: ElementTree.fromstring(archive.read(name)) for name in archive.namelist()}
    manifest = files["imsmanifest.xml"]
    assert next(iter(files)) == "imsmanifest.xml"  # at the root
    assert [child.tag for child in manifest] == [f"{P}{name}" for name in ("metadata", "organizations", "resources")]
    listed = [each.get("href") for each in manifest.iter(f"{P}file")]
    assert sorted(listed) == sorted(set(files) - {"imsmanifest.xml"})
    kinds = {each.get("identifier"): each.get("type") for each in manifest.iter(f"{P}resource")}
    assert kinds.pop("test") == "imsqti_test_xmlv2p1" and set(kinds.values()) == {"imsqti_item_xmlv2p1"}
    assert [each.get("identifierref") for each in manifest.iter(f"{P}dependency")] == [*kinds]
    asked = [each.get("href") for each in files["test.xml"].iter(f"{Q}assessmentItemRef")]
    assert asked == [f"q-{each.id.replace('.', '-')}.xml" for each in questions]
    assert files["test.xml"].get("title") == "Weeks 3 & 4" and data == qti.package(questions, "Weeks 3 & 4")


def test_signs_of_xml_lose_their_meaning():
    odd = Choice("00.q9", 'a < b & "c" `x<y>`', (Option("<b>", "'1' & 2", True), Option("]]>", "*no*")))
    item = parsed(odd)
    assert words(item.find(f".//{Q}prompt")) == odd.prompt
    assert {words(each) for each in item.iter(f"{Q}simpleChoice")} == {"<b>", "]]>"}
    number = Number("00.q8", "1 < 2?", 0.5, "a & b", ((1.0, "<no>"),), "else", 0.01)
    assert said(parsed(number), "1.0") == (False, "<no>")


@pytest.mark.skipif(not os.environ.get("QTI_SCHEMAS"), reason="QTI_SCHEMAS names no folder with the schemas")
def test_every_file_is_valid_by_the_schemas():
    etree = pytest.importorskip("lxml.etree")
    folder = Path(os.environ["QTI_SCHEMAS"])
    items, packages = (
        etree.XMLSchema(etree.parse(str(folder / name))) for name in ("qtiv2p1/imsqti_v2p1.xsd", "imscp_v1p1.xsd")
    )
    for text in (qti.test(QUESTIONS, "All"), *map(qti.item, QUESTIONS)):
        items.assertValid(etree.fromstring(text.encode()))
    packages.assertValid(etree.fromstring(qti.manifest(QUESTIONS).encode()))
