"""What the captions of all languages share: words before the clause, a capital letter, a full stop."""

from kzoo.data.scenes.scene import Scene


def opening(scene: Scene, times: dict[str, str], sides: dict[str, str]) -> tuple[str, ...]:
    """Return the words that a caption opens with, such as "In the morning": one text, or none.

    Args:
        scene: what to say.
        times: how the language says each time and weather.
        sides: how it says where the subject is.
    """
    if not scene.opening:
        return ()
    return (times[scene.time] if scene.opening == "time" else sides[scene.subject.side],)


def written(clause: str) -> str:
    """Return a clause as a sentence of the Latin alphabet."""
    return clause[0].upper() + clause[1:] + "."
