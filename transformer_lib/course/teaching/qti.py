"""Questions in QTI 2.1, the format that most learning platforms import: an item each, in a package with its manifest.

An item answers every option, and every usual wrong number, with its explanation. (*IMS Question & Test
Interoperability, version 2.1*; *IMS Content Packaging 1.1*.)
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from html import escape

from ..quiz.model import Choice, Number, Question
from ..quiz.view import rich

LETTERS = "ABCDEFGH"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
PACKAGE = "http://www.imsglobal.org/xsd/imscp_v1p1"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
QTI_NAMES = f'xmlns="{QTI}" xmlns:xsi="{XSI}" xsi:schemaLocation="{QTI} {QTI}.xsd"'
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same questions give the same file
TEST = "test.xml"

RIGHT = """\
<setOutcomeValue identifier="SCORE"><baseValue baseType="float">1</baseValue></setOutcomeValue>"""
SCORE = """\
<outcomeDeclaration identifier="SCORE" cardinality="single" baseType="float">
<defaultValue><value>0</value></defaultValue></outcomeDeclaration>
<outcomeDeclaration identifier="FEEDBACK" cardinality="single" baseType="identifier"/>"""


def name_of(question: Question) -> str:
    """Return the identifier of a question in a package, such as "q-04-q1": one may not begin with a digit."""
    return "q-" + question.id.replace(".", "-")


def item(question: Question) -> str:
    """Return a question as an assessmentItem."""
    declared, body, processed, told = (_choice if isinstance(question, Choice) else _number)(question)
    feedback = "\n".join(
        f'<modalFeedback outcomeIdentifier="FEEDBACK" identifier="{name}" showHide="show">{rich(why)}</modalFeedback>'
        for name, why in told
    )
    return (
        f'{HEAD}<assessmentItem {QTI_NAMES} identifier="{name_of(question)}" title="{escape(question.id)}"'
        f' adaptive="false" timeDependent="false">\n{declared}\n{SCORE}\n<itemBody>\n{body}\n</itemBody>\n'
        f"<responseProcessing>\n{processed}\n</responseProcessing>\n{feedback}\n</assessmentItem>\n"
    )


Parts = tuple[str, str, str, list[tuple[str, str]]]


def _choice(question: Choice) -> Parts:
    """Return what is declared, asked and done with an answer, and what is said to each."""
    letters = LETTERS[: len(question.options)]
    right = next(letter for letter, option in zip(letters, question.options, strict=True) if option.right)
    options = "\n".join(
        f'<simpleChoice identifier="{letter}">{rich(option.text)}</simpleChoice>'
        for letter, option in zip(letters, question.options, strict=True)
    )
    body = (
        '<choiceInteraction responseIdentifier="RESPONSE" shuffle="true" maxChoices="1">\n'
        f"<prompt>{rich(question.prompt)}</prompt>\n{options}\n</choiceInteraction>"
    )
    processed = (
        "<responseCondition><responseIf>"
        '<match><variable identifier="RESPONSE"/><correct identifier="RESPONSE"/></match>'
        f"\n{RIGHT}</responseIf></responseCondition>\n"
        '<setOutcomeValue identifier="FEEDBACK"><variable identifier="RESPONSE"/></setOutcomeValue>'
    )
    told = [(letter, option.why) for letter, option in zip(letters, question.options, strict=True)]
    return _declared("identifier", right), body, processed, told


def _number(question: Number) -> Parts:
    """Return the same of a question that asks for a number: the first answer that is near enough decides."""
    value = f"{question.value:g}"
    answers = [("right", value), *((f"near{place}", f"{near:g}") for place, (near, _) in enumerate(question.near, 1))]
    steps = []
    for kind, (name, number) in zip(["If", *["ElseIf"] * len(question.near)], answers, strict=True):
        score = f"\n{RIGHT}" if name == "right" else ""
        equal = _equal(number, question.tolerance)
        steps.append(f"<response{kind}>{equal}{score}\n{_says(name)}</response{kind}>")
    steps.append(f"<responseElse>{_says('otherwise')}</responseElse>")
    body = (
        f"<p>{rich(question.prompt)}</p>\n"
        '<p><textEntryInteraction responseIdentifier="RESPONSE" expectedLength="10"/></p>'
    )
    processed = "<responseCondition>\n" + "\n".join(steps) + "\n</responseCondition>"
    told = [("right", question.why), *((f"near{place}", why) for place, (_, why) in enumerate(question.near, 1))]
    return _declared("float", value), body, processed, [*told, ("otherwise", question.otherwise)]


def _declared(kind: str, right: str) -> str:
    return (
        f'<responseDeclaration identifier="RESPONSE" cardinality="single" baseType="{kind}">\n'
        f"<correctResponse><value>{right}</value></correctResponse></responseDeclaration>"
    )


def _equal(number: str, tolerance: float) -> str:
    wide = f"{tolerance:g}"
    return (
        f'<equal toleranceMode="absolute" tolerance="{wide} {wide}"><variable identifier="RESPONSE"/>'
        f'<baseValue baseType="float">{number}</baseValue></equal>'
    )


def _says(name: str) -> str:
    said = f'<baseValue baseType="identifier">{name}</baseValue>'
    return f'<setOutcomeValue identifier="FEEDBACK">{said}</setOutcomeValue>'


def test(questions: Sequence[Question], title: str) -> str:
    """Return the assessmentTest that asks the questions in their order."""
    items = "\n".join(
        f'<assessmentItemRef identifier="{name_of(each)}" href="{name_of(each)}.xml"/>' for each in questions
    )
    return (
        f'{HEAD}<assessmentTest {QTI_NAMES} identifier="test" title="{escape(title)}">\n'
        '<testPart identifier="part" navigationMode="nonlinear" submissionMode="individual">\n'
        f'<assessmentSection identifier="section" title="{escape(title)}" visible="true">\n{items}\n'
        "</assessmentSection></testPart></assessmentTest>\n"
    )


def manifest(questions: Sequence[Question]) -> str:
    """Return imsmanifest.xml: what is in the package, and what kind each file is of."""
    return (
        f'{HEAD}<manifest xmlns="{PACKAGE}" xmlns:xsi="{XSI}" xsi:schemaLocation="{PACKAGE} {PACKAGE}.xsd"'
        ' identifier="transformer-course">\n'
        "<metadata><schema>QTIv2.1 Package</schema><schemaversion>1.0.0</schemaversion></metadata>\n"
        f"<organizations/>\n<resources>\n" + "\n".join(_resources(questions)) + "\n</resources></manifest>\n"
    )


def _resources(questions: Sequence[Question]) -> Iterator[str]:
    needed = "".join(f'<dependency identifierref="{name_of(each)}"/>' for each in questions)
    yield (
        f'<resource identifier="test" type="imsqti_test_xmlv2p1" href="{TEST}"><file href="{TEST}"/>{needed}</resource>'
    )
    for each in questions:
        file = f"{name_of(each)}.xml"
        yield (
            f'<resource identifier="{name_of(each)}" type="imsqti_item_xmlv2p1" href="{file}">'
            f'<file href="{file}"/></resource>'
        )


def package(questions: Sequence[Question], title: str = "Examination") -> bytes:
    """Return a package of the questions as a zip archive; the same questions give the same bytes."""
    texts = {"imsmanifest.xml": manifest(questions), TEST: test(questions, title)}
    texts |= {f"{name_of(each)}.xml": item(each) for each in questions}
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, text in texts.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, text)
    return held.getvalue()
