"""Scenes in French: gender, agreement, elision, adjectives on either side of the noun."""

from kzoo.scenes.caption import opening, written
from kzoo.scenes.scene import Entity, Scene

NOUNS = {  # gender, singular, plural if it is not just "-s"
    "man": ("m", "homme"),
    "woman": ("f", "femme"),
    "boy": ("m", "garçon"),
    "girl": ("f", "fille"),
    "child": ("m", "enfant"),
    "teacher/male": ("m", "enseignant"),
    "teacher/female": ("f", "enseignante"),
    "doctor/male": ("m", "médecin"),
    "doctor/female": ("f", "médecin"),
    "student/male": ("m", "étudiant"),
    "student/female": ("f", "étudiante"),
    "singer/male": ("m", "chanteur"),
    "singer/female": ("f", "chanteuse"),
    "farmer/male": ("m", "agriculteur"),
    "farmer/female": ("f", "agricultrice"),
    "dog": ("m", "chien"),
    "cat": ("m", "chat"),
    "bird": ("m", "oiseau", "oiseaux"),
    "duck": ("m", "canard"),
    "rabbit": ("m", "lapin"),
    "horse": ("m", "cheval", "chevaux"),
    "cow": ("f", "vache"),
    "sheep": ("m", "mouton"),
    "goat": ("f", "chèvre"),
    "donkey": ("m", "âne"),
    "camel": ("m", "chameau", "chameaux"),
    "monkey": ("m", "singe"),
    "pig": ("m", "cochon"),
    "ball": ("m", "ballon"),
    "book": ("m", "livre"),
    "bag": ("m", "sac"),
    "umbrella": ("m", "parapluie"),
    "guitar": ("f", "guitare"),
    "kite": ("m", "cerf-volant", "cerfs-volants"),
    "cup": ("f", "tasse"),
    "basket": ("m", "panier"),
    "hat": ("m", "chapeau", "chapeaux"),
    "lamp": ("f", "lampe"),
    "flower": ("f", "fleur"),
    "apple": ("f", "pomme"),
    "alarm clock": ("m", "réveil"),
    "bottle": ("f", "bouteille"),
    "drum": ("m", "tambour"),
    "flag": ("m", "drapeau", "drapeaux"),
    "picture": ("m", "tableau", "tableaux"),
    "key": ("f", "clé"),
    "candle": ("f", "bougie"),
    "bucket": ("m", "seau", "seaux"),
    "camera": ("m", "appareil photo", "appareils photo"),
    "plate": ("f", "assiette"),
    "spoon": ("f", "cuillère"),
    "brush": ("f", "brosse"),
    "box": ("f", "caisse"),
    "chair": ("f", "chaise"),
    "table": ("f", "table"),
    "bicycle": ("m", "vélo"),
    "ladder": ("f", "échelle"),
    "car": ("f", "voiture"),
    "boat": ("m", "bateau", "bateaux"),
    "cart": ("f", "charrette"),
    "tree": ("m", "arbre"),
    "bench": ("m", "banc"),
    "bat/club": ("f", "batte"),
    "bat/animal": ("f", "chauve-souris", "chauves-souris"),
    "crane/machine": ("f", "grue"),
    "crane/bird": ("f", "grue"),
    "mouse/device": ("f", "souris", "souris"),
    "mouse/animal": ("f", "souris", "souris"),
    "seal/stamp": ("m", "sceau", "sceaux"),
    "seal/animal": ("m", "phoque"),
    "trunk/box": ("f", "malle"),
    "trunk/tree": ("m", "tronc d'arbre", "troncs d'arbre"),
    "pipe/smoking": ("f", "pipe"),
    "pipe/tube": ("m", "tuyau", "tuyaux"),
    "bow/weapon": ("m", "arc"),
    "bow/ribbon": ("m", "nœud", "nœuds"),
}
ADJECTIVES = {  # masculine, feminine, masculine plural, feminine plural
    "small": ("petit", "petite", "petits", "petites"),
    "big": ("grand", "grande", "grands", "grandes"),
    "young": ("jeune", "jeune", "jeunes", "jeunes"),
    "old": ("vieux", "vieille", "vieux", "vieilles"),
    "red": ("rouge", "rouge", "rouges", "rouges"),
    "blue": ("bleu", "bleue", "bleus", "bleues"),
    "green": ("vert", "verte", "verts", "vertes"),
    "yellow": ("jaune", "jaune", "jaunes", "jaunes"),
    "white": ("blanc", "blanche", "blancs", "blanches"),
    "black": ("noir", "noire", "noirs", "noires"),
    "brown": ("brun", "brune", "bruns", "brunes"),
    "grey": ("gris", "grise", "gris", "grises"),
}
OLD_BEFORE_VOWEL = "vieil"  # masculine singular: "un vieil homme"
VOWELS = "aeiouâéèêîôœh"  # every "h" of this lexicon is mute
NUMBERS = {2: "deux", 3: "trois"}
CLOTHES = {  # gender, "en" or "avec", singular
    "coat": ("m", "en", "manteau"),
    "jacket": ("f", "en", "veste"),
    "shirt": ("f", "en", "chemise"),
    "sweater": ("m", "en", "pull"),
    "hat": ("m", "avec un", "chapeau"),
    "scarf": ("f", "avec une", "écharpe"),
}

SETTINGS = {  # gender, preposition with its article, noun
    "park": ("m", "dans le", "parc"),
    "street": ("f", "dans la", "rue"),
    "beach": ("f", "sur la", "plage"),
    "garden": ("m", "dans le", "jardin"),
    "forest": ("f", "dans la", "forêt"),
    "meadow": ("m", "dans le", "pré"),
    "field": ("m", "dans le", "champ"),
    "bridge": ("m", "sur le", "pont"),
    "market": ("m", "au", "marché"),
    "playground": ("m", "sur le", "terrain de jeu"),
    "square": ("f", "sur la", "place"),
    "river": ("f", "au bord de la", "rivière"),
    "lake": ("m", "au bord du", "lac"),
    "station": ("f", "à la", "gare"),
    "farm": ("f", "à la", "ferme"),
    "yard": ("f", "dans la", "cour"),
    "mountain": ("f", "sur la", "montagne"),
    "kitchen": ("f", "dans la", "cuisine"),
    "living room": ("m", "dans le", "salon"),
    "library": ("f", "dans la", "bibliothèque"),
    "café": ("m", "au", "café"),
    "classroom": ("f", "dans la", "salle de classe"),
    "shop": ("m", "dans le", "magasin"),
    "garage": ("m", "dans le", "garage"),
    "museum": ("m", "au", "musée"),
    "office": ("m", "dans le", "bureau"),
}
TIMES = {
    "morning": "le matin",
    "noon": "à midi",
    "evening": "le soir",
    "night": "la nuit",
    "sun": "par une journée ensoleillée",
    "wind": "par une journée venteuse",
    "cold": "par une journée froide",
    "rain": "sous la pluie",
    "snow": "sous la neige",
    "fog": "dans le brouillard",
}
SIDES = {"left": "à gauche", "right": "à droite"}
RELATIONS = {"next to": "à côté d'", "in front of": "devant ", "behind": "derrière "}

ACTIONS = {  # third person singular and plural; of "être", what follows agrees: masculine, feminine
    "sleep": ("dort", "dorment"),
    "sit": ("est", "sont", "assis", "assise", "assis", "assises"),
    "stand": ("est", "sont", "debout", "debout", "debout", "debout"),
    "lie": ("est", "sont", "allongé", "allongée", "allongés", "allongées"),
    "walk": ("marche", "marchent"),
    "run": ("court", "courent"),
    "jump": ("saute", "sautent"),
    "wait": ("attend", "attendent"),
    "dance": ("danse", "dansent"),
    "sing": ("chante", "chantent"),
    "read": ("lit", "lisent"),
    "work": ("travaille", "travaillent"),
    "eat": ("mange", "mangent"),
    "wave": ("fait signe", "font signe"),
    "cry": ("pleure", "pleurent"),
    "hold": ("tient", "tiennent"),
    "carry": ("porte", "portent"),
    "watch": ("regarde", "regardent"),
    "photograph": ("photographie", "photographient"),
    "draw": ("dessine", "dessinent"),
    "wash": ("lave", "lavent"),
    "buy": ("achète", "achètent"),
    "push": ("pousse", "poussent"),
    "repair": ("répare", "réparent"),
    "point": ("montre du doigt", "montrent du doigt"),
    "seek": ("cherche", "cherchent"),
    "feed": ("nourrit", "nourrissent"),
    "stroke": ("caresse", "caressent"),
    "follow": ("suit", "suivent"),
    "greet": ("salue", "saluent"),
    "await": ("attend", "attendent"),
    "ride": ("monte", "montent"),
}
PRONOUNS = {"male": "il", "female": "elle"}


def sentence(scene: Scene) -> str:
    """Return the caption in French.

    Args:
        scene: the scene.

    Example:
        >>> sentence(Scene("doing", "park", "", "day", "", Entity("cow", count=2), "sit"))
        'Deux vaches sont assises dans le parc.'
    """
    subject = _phrase(scene.subject)
    if scene.pattern == "existing":
        text = f"il y a {subject} {_place(scene)}"
    elif scene.pattern == "beside":
        text = f"il y a {subject} {RELATIONS[scene.relation]}{_phrase(scene.object)}"
    else:
        people = (scene.subject, scene.object) if scene.pattern == "pair" else (scene.subject,)
        subject = " et ".join(_phrase(entity) for entity in people)
        partner = {"acting": " ", "together": " avec "}.get(scene.pattern)
        partner = "" if partner is None else partner + _phrase(scene.object)
        text = f"{subject} {_verb(scene.action, people)}{partner} {_place(scene)}"
    return written(", ".join([*opening(scene, TIMES, SIDES), text]))


def forms(entity: Entity) -> tuple[str, ...]:
    """Return every form of the entity's word.

    Args:
        entity: the entity.

    Example:
        >>> forms(Entity("seal", sense="stamp"))
        ('sceau', 'sceaux')
    """
    return (PRONOUNS[entity.sex],) if entity.pronoun else (_noun(entity, 1), _noun(entity, 2))


def _noun(entity: Entity, count: int) -> str:
    _, singular, *plural = NOUNS[entity.key]
    return singular if count == 1 else plural[0] if plural else singular + "s"


def _gender(entity: Entity) -> str:
    return {"male": "m", "female": "f"}[entity.sex] if entity.pronoun else NOUNS[entity.key][0]


def _agreed(adjective: str, gender: str, many: bool) -> str:
    return ADJECTIVES[adjective][(gender == "f") + 2 * many]


def _phrase(entity: Entity) -> str:
    if entity.pronoun:
        return PRONOUNS[entity.sex]
    gender, many, noun = _gender(entity), entity.count > 1, _noun(entity, entity.count)
    words = [NUMBERS[entity.count] if many else "un" if gender == "m" else "une"]
    if entity.said_size:
        words.append(_before(entity.said_size, gender, many, noun))
    words.append(noun)
    if entity.said_colour and entity.clothing:
        clothing_gender, preposition, clothing = CLOTHES[entity.clothing]  # singular: one each
        words += [preposition, clothing, _agreed(entity.colour, clothing_gender, False)]
    elif entity.said_colour:
        words.append(_agreed(entity.colour, gender, many))
    return " ".join(words)


def _before(adjective: str, gender: str, many: bool, noun: str) -> str:
    if adjective == "old" and gender == "m" and not many and noun[0] in VOWELS:
        return OLD_BEFORE_VOWEL
    return _agreed(adjective, gender, many)


def _verb(action: str, people: tuple[Entity, ...]) -> str:
    many = len(people) > 1 or people[0].count > 1
    verb, agreeing = ACTIONS[action][many], ACTIONS[action][2:]
    if not agreeing:
        return verb
    feminine = all(_gender(entity) == "f" for entity in people)
    return f"{verb} {agreeing[feminine + 2 * many]}"


def _place(scene: Scene) -> str:
    gender, preposition, noun = SETTINGS[scene.setting]
    adjective = [_before(scene.setting_size, gender, False, noun)] if scene.setting_size else []
    return " ".join([preposition, *adjective, noun])
