"""Placeholders come through, or the text stays; the translators are made up."""

import re

import pytest
from made_up import MadeUp, in_order

from kzoo.documents.inline import Inline, pieces_of, texts, whole
from kzoo.documents.placeholders import has_words, keeps


@pytest.mark.parametrize(
    ("text", "placeholders"),
    [
        ("Hello {0} and {name!r:>3}, {{user.name}}", ["{0}", "{name!r:>3}", "{{user.name}}"]),
        ("${x} of %s, %(name)s, %1$d%%, %-5.2f", ["${x}", "%s", "%(name)s", "%1$d", "%%", "%-5.2f"]),
        ("100% sure, 50%-off", ["100", "50"]),
        ("See https://a.b/c?d=1&e (or www.a.b/x).", ["https://a.b/c?d=1&e", "www.a.b/x"]),
        ("Ask a.b+c@d-e.org.", ["a.b+c@d-e.org"]),
        ("On 24.12.2024 at 7:30, 1,000.5 km, 1st, B2B", ["24.12.2024", "7:30", "1,000.5"]),
        ("Open [X5X] or [X 5X], a [X12X].", ["[X5X]", "[X12X]"]),
        ("Tom &amp; {n, plural, other {# cats}}", ["&amp;", "{n, plural, other {# cats}}"]),
        ("# of :count, $t(my.key), #tag, C#, a: b", ["#", ":count", "$t(my.key)", "#tag"]),
    ],
)  # fmt: skip
def test_what_is_a_placeholder(text, placeholders):
    """A text without one of them, or with one twice, does not keep them; its words may change."""
    assert keeps(text, f"X {text} y")
    for placeholder in placeholders:
        assert not keeps(text, text.replace(placeholder, "", 1)), placeholder
        assert not keeps(text, f"{text} {placeholder}")
        assert not has_words(placeholder)


def losing(text):
    """Translate to capitals, without what is in braces."""
    return re.sub(r"\{.*?\}", "", text).upper() + "." * (text == "See")


def test_lost_ones_are_put_between_the_translated_parts():
    translator = MadeUp(losing)
    found = translator.texts(["A dog. See {x}, it runs!", "{x}", "A dog."], "en")
    assert found == ["A DOG. SEE {x}, IT RUNS!", "{x}", "A DOG."]
    assert translator.asked == ["A dog.", "See {x}, it runs!", "See", "it runs"]


def test_elements_around_lost_ones_stay():
    (text,) = texts(["Press ", Inline("b", ["{x} and"]), " go."])
    (found,) = MadeUp(losing, in_order).texts([text], "en")
    assert whole(pieces_of(found)) == "PRESS {x} AND GO."
    assert pieces_of(found)[1].pieces == ["{x} AND"]


def test_a_text_whose_parts_bring_new_ones_has_no_translation():
    assert MadeUp(lambda text: "7").texts(["A dog {x}", "A dog. A {x}."]) == ["", ""]
