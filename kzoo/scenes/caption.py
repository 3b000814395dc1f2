"""Helpers for the captions of all languages: words before the clause, a capital letter, a full stop."""

from kzoo.scenes.scene import Scene


def opening(scene: Scene, times: dict[str, str], sides: dict[str, str]) -> tuple[str, ...]:
    """Return the words that open a caption, such as "In the morning": one text, or none.

    Args:
        scene: the scene.
        times: the language's words for each time and weather.
        sides: the language's words for the subject's side.
    """
    if not scene.opening:
        return ()
    return (times[scene.time] if scene.opening == "time" else sides[scene.subject.side],)


def written(clause: str) -> str:
    """Return a clause as a sentence in the Latin alphabet."""
    return clause[0].upper() + clause[1:] + "."
