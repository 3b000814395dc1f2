"""The BI scheme: there and back, and what no scheme writes."""

import itertools

from message_of import message_of

from kzoo.models.segments import segments_to_tags, tags_to_segments


def test_there_and_back():
    for lengths in itertools.product((1, 2, 3), repeat=3):
        for tags in itertools.product("NV", repeat=3):
            words = [("字" * length, tag) for length, tag in zip(lengths, tags, strict=True)]
            characters, places = segments_to_tags(words)
            assert characters == "字" * sum(lengths)
            assert [tag[0] for tag in places].count("B") == 3
            assert tags_to_segments(characters, places) == words


def test_a_continuation_of_nothing_begins_a_word():
    tags = ["I-N", "I-N", "I-V", "B-V", "I-N"]
    assert tags_to_segments("abcde", tags) == [("ab", "N"), ("c", "V"), ("d", "V"), ("e", "N")]
    assert tags_to_segments("", []) == []


def test_a_word_that_is_empty_or_without_its_tag_is_refused():
    assert "tag N" in message_of(segments_to_tags, [("学生", "N"), ("", "N")])
    assert "'学生'" in message_of(segments_to_tags, ["学生"])
