"""Certificates that come back: answers are computed again, and only the seal of the class itself is whole."""

from __future__ import annotations

import pytest

pytest.importorskip("nbgrader", reason='nbgrader is not installed: pip install -e ".[teach]"')
pytest.importorskip("latex2mathml", reason='latex2mathml is not installed: pip install -e ".[teach]"')

from transformer_lib import __version__
from transformer_lib.course import certificate
from transformer_lib.course.teaching import certificates
from transformer_lib.course.teaching.assignments import alone
from transformer_lib.course.teaching.certificates import Verified

SECRET = b"a secret of the class, long enough"
RIGHT = """
import torch


def causal_mask(seq_len):
    return torch.ones(seq_len, seq_len, dtype=torch.bool).tril()
"""
WRONG = RIGHT.replace("tril", "triu")
ON = "2026-11-28"
VERIFIED = Verified(("07.1",), {}, ("04.1",))


def stated(source: str = RIGHT, **more) -> dict:
    base = {"format": 1, "course": __version__, "name": "Ada", "made": ON, "quiz": {}, "case": {}, "prediction": {}}
    base |= {"exercise": {"04.1": ON, "07.1": ON}, "functions": ["causal_mask"], "source": source}
    return base | more


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "class.secret"
    file.write_bytes(SECRET + b"\n")
    return file


def written(folder, statement):
    path = folder / "certificate.html"
    path.write_text(certificate.page(statement), encoding="utf-8")
    return path


def done(*arguments) -> int:
    return certificates.main([str(each) for each in arguments])


@pytest.mark.fast
def test_a_seal_holds_for_what_was_sealed_by_this_class_alone(tmp_path, secret, capsys):
    sealed = certificates.signed(stated(), VERIFIED, SECRET, "B. Teacher")
    assert done("check", written(tmp_path, sealed), "--secret", secret) == 0
    assert "the seal is whole: signed by B. Teacher on " in capsys.readouterr().out
    other = tmp_path / "other.secret"
    other.write_bytes(b"a secret of another class")
    assert done("check", written(tmp_path, sealed), "--secret", other) == 1


@pytest.mark.fast
@pytest.mark.parametrize(
    "forge",
    [
        lambda page: {**page, "name": "Eve"},
        lambda page: {**page, "exercise": {**page["exercise"], "08.1": ON}},
        lambda page: {**page, "prediction": {"00.p1": [ON, True]}},
        lambda page: {**page, "signed": {**page["signed"], "confirmed": ["04.1", "07.1"]}},
        lambda page: {**page, "signed": {**page["signed"], "on": "2020-01-01"}},
        lambda page: {**page, "signed": {**page["signed"], "seal": "0" * 64}},
        lambda page: {**page, "signed": {name: page["signed"][name] for name in ("by", "on", "confirmed")}},
        lambda page: {name: page[name] for name in page if name != "signed"},
        lambda page: certificates.signed(page, VERIFIED, b"a guess that is long enough", "B. Teacher"),
    ],
)
def test_a_forged_page_is_refused_though_it_is_one_that_the_course_would_write(tmp_path, secret, capsys, forge):
    sealed = certificates.signed(stated(), VERIFIED, SECRET, "B. Teacher")
    assert done("check", written(tmp_path, forge(sealed)), "--secret", secret) == 1
    assert "REFUSED: no seal of this class, or one that does not fit" in capsys.readouterr().out


@pytest.mark.fast
def test_a_page_that_was_edited_is_refused_before_its_seal_is_looked_at(tmp_path, secret, capsys):
    path = written(tmp_path, certificates.signed(stated(), VERIFIED, SECRET, "B. Teacher"))
    path.write_text(path.read_text(encoding="utf-8").replace("B. Teacher", "Somebody", 1), encoding="utf-8")
    assert done("check", path, "--secret", secret) == 1
    assert "REFUSED: page must be as it was written" in capsys.readouterr().out


@pytest.mark.fast
def test_a_signed_page_says_what_the_signature_shows():
    page = certificate.page(certificates.signed(stated(), VERIFIED, SECRET, "B. <Teacher>"))
    assert "Signed</b> by B. &lt;Teacher&gt; on " in page and "right: 07.1." in page
    assert "Only those who hold the secret" in page and "not signed" not in page


@pytest.mark.fast
@pytest.mark.parametrize("verified", [Verified((), {}, ("04.1",)), Verified(("04.1",), {"07.1": "wrong"}, ())])
def test_nothing_is_signed_that_was_not_computed(verified):
    with pytest.raises(ValueError, match="a page to sign must have answers, and right ones"):
        certificates.signed(stated(), verified, SECRET, "B. Teacher")


@pytest.mark.fast
def test_what_is_missing_is_named(tmp_path, secret, capsys, monkeypatch):
    path = written(tmp_path, stated())
    for given in (["check", path], ["sign", path, "--secret", secret]):
        with pytest.raises(SystemExit):
            done(*given)
        assert "needs --secret FILE" in capsys.readouterr().err
    secret.write_bytes(b"short")
    assert done("check", path, "--secret", secret) == 1
    assert "secret must have at least 16 bytes, got 5" in capsys.readouterr().out
    assert done("verify", tmp_path / "none.html") == 1
    monkeypatch.setattr(alone, "is_root", lambda: True)
    assert done("verify", path) == 1
    assert "user must be named where root grades" in capsys.readouterr().out


@pytest.mark.slow
def test_functions_are_computed_again_signed_and_a_wrong_one_is_refused(tmp_path, secret, capsys):
    path = written(tmp_path, stated())
    assert done("sign", path, "--secret", secret, "--by", "B. Teacher", "--allow-root") == 0
    out = capsys.readouterr().out
    assert "computed again, and right: 07.1\n" in out and "stated alone" in out and "04.1" in out
    assert certificate.read(path)["signed"]["confirmed"] == ["07.1"]
    assert done("check", path, "--secret", secret) == 0
    path = written(tmp_path, stated(WRONG))
    assert done("sign", path, "--secret", secret, "--by", "B. Teacher", "--allow-root") == 1
    assert "WRONG 07.1" in capsys.readouterr().out and "signed" not in certificate.read(path)
