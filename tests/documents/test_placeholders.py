"""Placeholders come through, or the text stays; the translators are made up."""

import re

import pytest

from kzoo.documents.placeholders import has_words, keeps, translate_keeping


@pytest.mark.parametrize(
    ("text", "placeholders"),
    [
        ("Hello {0} and {name!r:>3}, {{user.name}}", ["{0}", "{name!r:>3}", "{{user.name}}"]),
        ("${x} of %s, %(name)s, %1$d%%, %-5.2f", ["${x}", "%s", "%(name)s", "%1$d", "%%", "%-5.2f"]),
        ("100% sure, 50%-off", ["100", "50"]),
        ("See https://a.b/c?d=1&e (or www.a.b/x).", ["https://a.b/c?d=1&e", "www.a.b/x"]),
        ("Ask a.b+c@d-e.org.", ["a.b+c@d-e.org"]),
        ("On 24.12.2024 at 7:30, 1,000.5 km, 1st, B2B", ["24.12.2024", "7:30", "1,000.5"]),
        ("Tom &amp; {n, plural, other {# cats}}", ["&amp;", "{n, plural, other {# cats}}"]),
    ],
)  # fmt: skip
def test_what_is_a_placeholder(text, placeholders):
    """A text without one of them, or with one twice, does not keep them; its words may change."""
    assert keeps(text, f"X {text} y")
    for placeholder in placeholders:
        assert not keeps(text, text.replace(placeholder, "", 1)), placeholder
        assert not keeps(text, f"{text} {placeholder}")
        assert not has_words(placeholder)


def test_lost_ones_are_put_between_the_translated_parts():
    asked = []

    def losing(texts):
        asked.append(list(texts))
        return [re.sub(r"\{.*?\}", "", text).upper() + "." * (text == "See") for text in texts]

    found = translate_keeping(["A dog. See {x}, it runs!", "{x}", "A dog"], losing, "en")
    assert found == ["A DOG. SEE {x}, IT RUNS!", "{x}", "A DOG"]
    assert len(asked) == 2 and "A dog" not in asked[1]


def test_a_text_whose_parts_bring_new_ones_has_no_translation():
    assert translate_keeping(["A dog {x}"], lambda texts: ["7"] * len(texts)) == [""]
