"""Tables of scores in Markdown."""

from kzoo.evaluation.markdown import markdown_table


def test_texts_are_left_and_numbers_right_and_no_name_breaks_its_cell():
    assert markdown_table(("task", "score", "a|b"), [("MR", "accuracy", "60.0")], left=2).splitlines() == [
        "| task | score | a\\|b |",
        "| --- | --- | ---: |",
        "| MR | accuracy | 60.0 |",
    ]
