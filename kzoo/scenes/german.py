"""Scenes in German: gender, case, the endings of adjectives, the verb in second place."""

from kzoo.scenes.caption import opening, written
from kzoo.scenes.scene import Entity, Scene

NOUNS = {  # gender, singular, dative and accusative singular ("" if the same), plural
    "man": ("m", "Mann", "", "Männer"),
    "woman": ("f", "Frau", "", "Frauen"),
    "boy": ("m", "Junge", "Jungen", "Jungen"),
    "girl": ("n", "Mädchen", "", "Mädchen"),
    "child": ("n", "Kind", "", "Kinder"),
    "teacher/male": ("m", "Lehrer", "", "Lehrer"),
    "teacher/female": ("f", "Lehrerin", "", "Lehrerinnen"),
    "doctor/male": ("m", "Arzt", "", "Ärzte"),
    "doctor/female": ("f", "Ärztin", "", "Ärztinnen"),
    "student/male": ("m", "Student", "Studenten", "Studenten"),
    "student/female": ("f", "Studentin", "", "Studentinnen"),
    "singer/male": ("m", "Sänger", "", "Sänger"),
    "singer/female": ("f", "Sängerin", "", "Sängerinnen"),
    "farmer/male": ("m", "Bauer", "Bauern", "Bauern"),
    "farmer/female": ("f", "Bäuerin", "", "Bäuerinnen"),
    "dog": ("m", "Hund", "", "Hunde"),
    "cat": ("f", "Katze", "", "Katzen"),
    "bird": ("m", "Vogel", "", "Vögel"),
    "duck": ("f", "Ente", "", "Enten"),
    "rabbit": ("n", "Kaninchen", "", "Kaninchen"),
    "horse": ("n", "Pferd", "", "Pferde"),
    "cow": ("f", "Kuh", "", "Kühe"),
    "sheep": ("n", "Schaf", "", "Schafe"),
    "goat": ("f", "Ziege", "", "Ziegen"),
    "donkey": ("m", "Esel", "", "Esel"),
    "camel": ("n", "Kamel", "", "Kamele"),
    "monkey": ("m", "Affe", "Affen", "Affen"),
    "pig": ("n", "Schwein", "", "Schweine"),
    "ball": ("m", "Ball", "", "Bälle"),
    "book": ("n", "Buch", "", "Bücher"),
    "bag": ("f", "Tasche", "", "Taschen"),
    "umbrella": ("m", "Regenschirm", "", "Regenschirme"),
    "guitar": ("f", "Gitarre", "", "Gitarren"),
    "kite": ("m", "Drachen", "", "Drachen"),
    "cup": ("f", "Tasse", "", "Tassen"),
    "basket": ("m", "Korb", "", "Körbe"),
    "hat": ("m", "Hut", "", "Hüte"),
    "lamp": ("f", "Lampe", "", "Lampen"),
    "flower": ("f", "Blume", "", "Blumen"),
    "apple": ("m", "Apfel", "", "Äpfel"),
    "alarm clock": ("m", "Wecker", "", "Wecker"),
    "bottle": ("f", "Flasche", "", "Flaschen"),
    "drum": ("f", "Trommel", "", "Trommeln"),
    "flag": ("f", "Fahne", "", "Fahnen"),
    "picture": ("n", "Bild", "", "Bilder"),
    "key": ("m", "Schlüssel", "", "Schlüssel"),
    "candle": ("f", "Kerze", "", "Kerzen"),
    "bucket": ("m", "Eimer", "", "Eimer"),
    "camera": ("f", "Kamera", "", "Kameras"),
    "plate": ("m", "Teller", "", "Teller"),
    "spoon": ("m", "Löffel", "", "Löffel"),
    "brush": ("f", "Bürste", "", "Bürsten"),
    "box": ("f", "Kiste", "", "Kisten"),
    "chair": ("m", "Stuhl", "", "Stühle"),
    "table": ("m", "Tisch", "", "Tische"),
    "bicycle": ("n", "Fahrrad", "", "Fahrräder"),
    "ladder": ("f", "Leiter", "", "Leitern"),
    "car": ("n", "Auto", "", "Autos"),
    "boat": ("n", "Boot", "", "Boote"),
    "cart": ("m", "Karren", "", "Karren"),
    "tree": ("m", "Baum", "", "Bäume"),
    "bench": ("f", "Bank", "", "Bänke"),
    "bat/club": ("m", "Schläger", "", "Schläger"),
    "bat/animal": ("f", "Fledermaus", "", "Fledermäuse"),
    "crane/machine": ("m", "Kran", "", "Kräne"),
    "crane/bird": ("m", "Kranich", "", "Kraniche"),
    "mouse/device": ("f", "Maus", "", "Mäuse"),
    "mouse/animal": ("f", "Maus", "", "Mäuse"),
    "seal/stamp": ("n", "Siegel", "", "Siegel"),
    "seal/animal": ("f", "Robbe", "", "Robben"),
    "trunk/box": ("f", "Truhe", "", "Truhen"),
    "trunk/tree": ("m", "Baumstamm", "", "Baumstämme"),
    "pipe/smoking": ("f", "Pfeife", "", "Pfeifen"),
    "pipe/tube": ("n", "Rohr", "", "Rohre"),
    "bow/weapon": ("m", "Bogen", "", "Bögen"),
    "bow/ribbon": ("f", "Schleife", "", "Schleifen"),
}
ADJECTIVES = {
    "small": "klein",
    "big": "groß",
    "young": "jung",
    "old": "alt",
    "red": "rot",
    "blue": "blau",
    "green": "grün",
    "yellow": "gelb",
    "white": "weiß",
    "black": "schwarz",
    "brown": "braun",
    "grey": "grau",
}
ARTICLES = {  # "ein" by case and gender
    "nominative": {"m": "ein", "f": "eine", "n": "ein"},
    "accusative": {"m": "einen", "f": "eine", "n": "ein"},
    "dative": {"m": "einem", "f": "einer", "n": "einem"},
}
MIXED = {  # endings after "ein"
    "nominative": {"m": "er", "f": "e", "n": "es"},
    "accusative": {"m": "en", "f": "e", "n": "es"},
    "dative": {"m": "en", "f": "en", "n": "en"},
}
STRONG_PLURAL = {"nominative": "e", "accusative": "e", "dative": "en"}  # after "zwei" or nothing
WEAK_DATIVE = "en"  # after "dem" and "der"
NUMBERS = {2: "zwei", 3: "drei"}
CLOTHES = {  # gender, singular, dative plural
    "coat": ("m", "Mantel", "Mänteln"),
    "jacket": ("f", "Jacke", "Jacken"),
    "shirt": ("n", "Hemd", "Hemden"),
    "sweater": ("m", "Pullover", "Pullovern"),
    "hat": ("m", "Hut", "Hüten"),
    "scarf": ("m", "Schal", "Schals"),
}
WITH_HEAD_OR_NECK = ("hat", "scarf")  # one is "in" a coat but "mit" a hat

SETTINGS = {  # preposition with its article (all dative), noun
    "park": ("im", "Park"),
    "street": ("auf der", "Straße"),
    "beach": ("am", "Strand"),
    "garden": ("im", "Garten"),
    "forest": ("im", "Wald"),
    "meadow": ("auf der", "Wiese"),
    "field": ("auf dem", "Feld"),
    "bridge": ("auf der", "Brücke"),
    "market": ("auf dem", "Markt"),
    "playground": ("auf dem", "Spielplatz"),
    "square": ("auf dem", "Platz"),
    "river": ("am", "Fluss"),
    "lake": ("am", "See"),
    "station": ("am", "Bahnhof"),
    "farm": ("auf dem", "Bauernhof"),
    "yard": ("im", "Hof"),
    "mountain": ("auf dem", "Berg"),
    "kitchen": ("in der", "Küche"),
    "living room": ("im", "Wohnzimmer"),
    "library": ("in der", "Bibliothek"),
    "café": ("im", "Café"),
    "classroom": ("im", "Klassenzimmer"),
    "shop": ("im", "Laden"),
    "garage": ("in der", "Garage"),
    "museum": ("im", "Museum"),
    "office": ("im", "Büro"),
}
TIMES = {
    "morning": "am Morgen",
    "noon": "am Mittag",
    "evening": "am Abend",
    "night": "in der Nacht",
    "sun": "an einem sonnigen Tag",
    "wind": "an einem windigen Tag",
    "cold": "an einem kalten Tag",
    "rain": "im Regen",
    "snow": "im Schnee",
    "fog": "im Nebel",
}
SIDES = {"left": "links", "right": "rechts"}
RELATIONS = {"next to": "neben", "in front of": "vor", "behind": "hinter"}

ACTIONS = {  # third person singular and plural, then the preposition and the case of the object
    "": ("ist", "sind"),  # in "existing" and "beside"
    "sleep": ("schläft", "schlafen"),
    "sit": ("sitzt", "sitzen"),
    "stand": ("steht", "stehen"),
    "lie": ("liegt", "liegen"),
    "walk": ("geht", "gehen"),
    "run": ("rennt", "rennen"),
    "jump": ("springt", "springen"),
    "wait": ("wartet", "warten"),
    "dance": ("tanzt", "tanzen"),
    "sing": ("singt", "singen"),
    "read": ("liest", "lesen"),
    "work": ("arbeitet", "arbeiten"),
    "eat": ("isst", "essen"),
    "wave": ("winkt", "winken"),
    "cry": ("weint", "weinen"),
    "hold": ("hält", "halten", "", "accusative"),
    "carry": ("trägt", "tragen", "", "accusative"),
    "watch": ("betrachtet", "betrachten", "", "accusative"),
    "photograph": ("fotografiert", "fotografieren", "", "accusative"),
    "draw": ("zeichnet", "zeichnen", "", "accusative"),
    "wash": ("wäscht", "waschen", "", "accusative"),
    "buy": ("kauft", "kaufen", "", "accusative"),
    "push": ("schiebt", "schieben", "", "accusative"),
    "repair": ("repariert", "reparieren", "", "accusative"),
    "point": ("zeigt", "zeigen", "auf ", "accusative"),
    "seek": ("sucht", "suchen", "", "accusative"),
    "feed": ("füttert", "füttern", "", "accusative"),
    "stroke": ("streichelt", "streicheln", "", "accusative"),
    "follow": ("folgt", "folgen", "", "dative"),
    "greet": ("begrüßt", "begrüßen", "", "accusative"),
    "await": ("wartet", "warten", "auf ", "accusative"),
    "ride": ("reitet", "reiten", "auf ", "dative"),
}
PRONOUNS = {"male": "er", "female": "sie"}


def sentence(scene: Scene) -> str:
    """Return the caption in German.

    Args:
        scene: the scene.

    Example:
        >>> sentence(Scene("doing", "park", "", "sun", "time", Entity("dog"), "sleep"))
        'An einem sonnigen Tag schläft ein Hund im Park.'
    """
    subject, place = _phrase(scene.subject, "nominative"), _place(scene)
    many = scene.subject.count > 1 or scene.pattern == "pair"
    if scene.pattern == "existing":
        parts = (place, subject)
    elif scene.pattern == "beside":
        parts = (f"{RELATIONS[scene.relation]} {_phrase(scene.object, 'dative')}", subject)
    elif scene.pattern == "pair":
        parts = (f"{subject} und {_phrase(scene.object, 'nominative')}", place)
    elif scene.pattern == "together":
        parts = (subject, f"mit {_phrase(scene.object, 'dative')}", place)
    elif scene.pattern == "acting":  # what is new, the object, comes last
        _, _, preposition, case = ACTIONS[scene.action]
        parts = (subject, place, preposition + _phrase(scene.object, case))
    else:
        parts = (subject, place)
    first, *rest = *opening(scene, TIMES, SIDES), *parts  # between them, in second place, the verb
    return written(" ".join([first, ACTIONS[scene.action][many], *rest]))


def forms(entity: Entity) -> tuple[str, ...]:
    """Return every form of the entity's word.

    Args:
        entity: the entity.

    Example:
        >>> forms(Entity("bat", sense="animal"))
        ('Fledermaus', 'Fledermäuse', 'Fledermäusen')
    """
    if entity.pronoun:
        return (PRONOUNS[entity.sex],)
    _, singular, oblique, plural = NOUNS[entity.key]
    dative = plural if plural[-1] in "ns" else plural + "n"
    return tuple(dict.fromkeys(form for form in (singular, oblique, plural, dative) if form))


def _phrase(entity: Entity, case: str) -> str:
    if entity.pronoun:
        return PRONOUNS[entity.sex]
    gender, singular, oblique, plural = NOUNS[entity.key]
    if entity.count == 1:
        start, ending = ARTICLES[case][gender], MIXED[case][gender]
        noun = singular if case == "nominative" else oblique or singular
    else:
        start, ending, noun = NUMBERS[entity.count], STRONG_PLURAL[case], plural
        if case == "dative" and noun[-1] not in "ns":
            noun += "n"
    adjectives = [entity.said_size] if entity.said_size else []
    if entity.said_colour and not entity.clothing:
        adjectives.append(entity.colour)
    text = " ".join([start, *(ADJECTIVES[adjective] + ending for adjective in adjectives), noun])
    return f"{text} {_clothing(entity)}" if entity.said_colour and entity.clothing else text


def _clothing(entity: Entity) -> str:
    gender, singular, plural = CLOTHES[entity.clothing]
    colour = ADJECTIVES[entity.colour] + "en"  # dative: the same after "einem" and in the plural
    preposition = "mit" if entity.clothing in WITH_HEAD_OR_NECK else "in"
    if entity.count > 1:
        return f"{preposition} {colour} {plural}"
    return f"{preposition} {ARTICLES['dative'][gender]} {colour} {singular}"


def _place(scene: Scene) -> str:
    preposition, noun = SETTINGS[scene.setting]
    adjective = [ADJECTIVES[scene.setting_size] + WEAK_DATIVE] if scene.setting_size else []
    return " ".join([preposition, *adjective, noun])
