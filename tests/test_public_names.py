"""What is public changes on purpose only."""

from pathlib import Path

from public_names import listing

KEPT = Path(__file__).with_name("public_names.txt")
HOW = "if on purpose: python tests/public_names.py > tests/public_names.txt"


def test_what_is_public_is_as_listed():
    kept, found = set(KEPT.read_text(encoding="utf-8").splitlines()), set(listing())
    assert sorted(kept - found) == [], f"gone; {HOW}"
    assert sorted(found - kept) == [], f"new; {HOW}"
