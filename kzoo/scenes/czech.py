"""Scenes in Czech: cases, gender with animacy, the agreement of adjectives, "v" or "ve"."""

from kzoo.scenes.caption import opening, written
from kzoo.scenes.scene import Entity, Scene

# Gender ("ma" is masculine animate, "mi" inanimate), then the singular's nominative, genitive,
# accusative, locative and instrumental, then the plural's nominative and accusative.
NOUNS = {
    key: tuple(forms.split())
    for key, forms in {
        "man": "ma muž muže muže muži mužem muži muže",
        "woman": "f žena ženy ženu ženě ženou ženy ženy",
        "boy": "ma chlapec chlapce chlapce chlapci chlapcem chlapci chlapce",
        "girl": "f dívka dívky dívku dívce dívkou dívky dívky",
        "child": "n dítě dítěte dítě dítěti dítětem děti děti",
        "teacher/male": "ma učitel učitele učitele učiteli učitelem učitelé učitele",
        "teacher/female": "f učitelka učitelky učitelku učitelce učitelkou učitelky učitelky",
        "doctor/male": "ma lékař lékaře lékaře lékaři lékařem lékaři lékaře",
        "doctor/female": "f lékařka lékařky lékařku lékařce lékařkou lékařky lékařky",
        "student/male": "ma student studenta studenta studentovi studentem studenti studenty",
        "student/female": "f studentka studentky studentku studentce studentkou studentky studentky",
        "singer/male": "ma zpěvák zpěváka zpěváka zpěvákovi zpěvákem zpěváci zpěváky",
        "singer/female": "f zpěvačka zpěvačky zpěvačku zpěvačce zpěvačkou zpěvačky zpěvačky",
        "farmer/male": "ma farmář farmáře farmáře farmáři farmářem farmáři farmáře",
        "farmer/female": "f farmářka farmářky farmářku farmářce farmářkou farmářky farmářky",
        "dog": "ma pes psa psa psovi psem psi psy",
        "cat": "f kočka kočky kočku kočce kočkou kočky kočky",
        "bird": "ma pták ptáka ptáka ptákovi ptákem ptáci ptáky",
        "duck": "f kachna kachny kachnu kachně kachnou kachny kachny",
        "rabbit": "ma králík králíka králíka králíkovi králíkem králíci králíky",
        "horse": "ma kůň koně koně koni koněm koně koně",
        "cow": "f kráva krávy krávu krávě krávou krávy krávy",
        "sheep": "f ovce ovce ovci ovci ovcí ovce ovce",
        "goat": "f koza kozy kozu koze kozou kozy kozy",
        "donkey": "ma osel osla osla oslu oslem osli osly",
        "camel": "ma velbloud velblouda velblouda velbloudovi velbloudem velbloudi velbloudy",
        "monkey": "f opice opice opici opici opicí opice opice",
        "pig": "n prase prasete prase praseti prasetem prasata prasata",
        "ball": "mi míč míče míč míči míčem míče míče",
        "book": "f kniha knihy knihu knize knihou knihy knihy",
        "bag": "f taška tašky tašku tašce taškou tašky tašky",
        "umbrella": "mi deštník deštníku deštník deštníku deštníkem deštníky deštníky",
        "guitar": "f kytara kytary kytaru kytaře kytarou kytary kytary",
        "kite": "ma drak draka draka drakovi drakem draci draky",
        "cup": "mi šálek šálku šálek šálku šálkem šálky šálky",
        "basket": "mi košík košíku košík košíku košíkem košíky košíky",
        "hat": "mi klobouk klobouku klobouk klobouku kloboukem klobouky klobouky",
        "lamp": "f lampa lampy lampu lampě lampou lampy lampy",
        "flower": "f květina květiny květinu květině květinou květiny květiny",
        "apple": "n jablko jablka jablko jablku jablkem jablka jablka",
        "alarm clock": "mi budík budíku budík budíku budíkem budíky budíky",
        "bottle": "f láhev láhve láhev láhvi láhví láhve láhve",
        "drum": "mi buben bubnu buben bubnu bubnem bubny bubny",
        "flag": "f vlajka vlajky vlajku vlajce vlajkou vlajky vlajky",
        "picture": "mi obraz obrazu obraz obrazu obrazem obrazy obrazy",
        "key": "mi klíč klíče klíč klíči klíčem klíče klíče",
        "candle": "f svíčka svíčky svíčku svíčce svíčkou svíčky svíčky",
        "bucket": "mi kbelík kbelíku kbelík kbelíku kbelíkem kbelíky kbelíky",
        "camera": "mi fotoaparát fotoaparátu fotoaparát fotoaparátu fotoaparátem fotoaparáty fotoaparáty",
        "plate": "mi talíř talíře talíř talíři talířem talíře talíře",
        "spoon": "f lžíce lžíce lžíci lžíci lžící lžíce lžíce",
        "brush": "mi kartáč kartáče kartáč kartáči kartáčem kartáče kartáče",
        "box": "f bedna bedny bednu bedně bednou bedny bedny",
        "chair": "f židle židle židli židli židlí židle židle",
        "table": "mi stůl stolu stůl stole stolem stoly stoly",
        "bicycle": "n kolo kola kolo kole kolem kola kola",
        "ladder": "mi žebřík žebříku žebřík žebříku žebříkem žebříky žebříky",
        "car": "n auto auta auto autě autem auta auta",
        "boat": "f loď lodi loď lodi lodí lodě lodě",
        "cart": "mi vozík vozíku vozík vozíku vozíkem vozíky vozíky",
        "tree": "mi strom stromu strom stromě stromem stromy stromy",
        "bench": "f lavička lavičky lavičku lavičce lavičkou lavičky lavičky",
        "bat/club": "f pálka pálky pálku pálce pálkou pálky pálky",
        "bat/animal": "ma netopýr netopýra netopýra netopýrovi netopýrem netopýři netopýry",
        "crane/machine": "mi jeřáb jeřábu jeřáb jeřábu jeřábem jeřáby jeřáby",
        "crane/bird": "ma jeřáb jeřába jeřába jeřábovi jeřábem jeřábi jeřáby",
        "mouse/device": "f myš myši myš myši myší myši myši",
        "mouse/animal": "f myš myši myš myši myší myši myši",
        "seal/stamp": "f pečeť pečeti pečeť pečeti pečetí pečeti pečeti",
        "seal/animal": "ma tuleň tuleně tuleně tuleni tuleněm tuleni tuleně",
        "trunk/box": "f truhla truhly truhlu truhle truhlou truhly truhly",
        "trunk/tree": "mi kmen kmenu kmen kmenu kmenem kmeny kmeny",
        "pipe/smoking": "f dýmka dýmky dýmku dýmce dýmkou dýmky dýmky",
        "pipe/tube": "f trubka trubky trubku trubce trubkou trubky trubky",
        "bow/weapon": "mi luk luku luk luku lukem luky luky",
        "bow/ribbon": "f mašle mašle mašli mašli mašlí mašle mašle",
    }.items()
}
CASES = ("nominative", "genitive", "accusative", "locative", "instrumental")
PLURAL_GENDERS = {"child": "f"}  # one "malé dítě" (neuter), two "malé děti" (feminine)
ADJECTIVES = {  # stem, masculine animate nominative plural
    "small": ("mal", "malí"),
    "big": ("velk", "velcí"),
    "young": ("mlad", "mladí"),
    "old": ("star", "staří"),
    "red": ("červen", "červení"),
    "blue": ("modr", "modří"),
    "green": ("zelen", "zelení"),
    "yellow": ("žlut", "žlutí"),
    "white": ("bíl", "bílí"),
    "black": ("čern", "černí"),
    "brown": ("hněd", "hnědí"),
    "grey": ("šed", "šedí"),
}
ENDINGS = {  # of the singular, in the order of CASES
    "ma": ("ý", "ého", "ého", "ém", "ým"),
    "mi": ("ý", "ého", "ý", "ém", "ým"),
    "f": ("á", "é", "ou", "é", "ou"),
    "n": ("é", "ého", "é", "ém", "ým"),
}
CLOTHES = {  # gender, locative singular, locative plural
    "coat": ("mi", "kabátě", "kabátech"),
    "jacket": ("f", "bundě", "bundách"),
    "shirt": ("f", "košili", "košilích"),
    "sweater": ("mi", "svetru", "svetrech"),
    "hat": ("mi", "klobouku", "kloboucích"),
    "scarf": ("f", "šále", "šálách"),
}

SETTINGS = {  # gender, preposition, locative (genitive after "u", by)
    "park": ("mi", "v", "parku"),
    "street": ("f", "na", "ulici"),
    "beach": ("f", "na", "pláži"),
    "garden": ("f", "v", "zahradě"),
    "forest": ("mi", "v", "lese"),
    "meadow": ("f", "na", "louce"),
    "field": ("n", "na", "poli"),
    "bridge": ("mi", "na", "mostě"),
    "market": ("mi", "na", "trhu"),
    "playground": ("n", "na", "hřišti"),
    "square": ("n", "na", "náměstí"),
    "river": ("f", "u", "řeky"),
    "lake": ("n", "u", "jezera"),
    "station": ("n", "na", "nádraží"),
    "farm": ("f", "na", "farmě"),
    "yard": ("mi", "na", "dvoře"),
    "mountain": ("f", "na", "hoře"),
    "kitchen": ("f", "v", "kuchyni"),
    "living room": ("mi", "v", "obývacím pokoji"),
    "library": ("f", "v", "knihovně"),
    "café": ("f", "v", "kavárně"),
    "classroom": ("f", "v", "učebně"),
    "shop": ("mi", "v", "obchodě"),
    "garage": ("f", "v", "garáži"),
    "museum": ("n", "v", "muzeu"),
    "office": ("f", "v", "kanceláři"),
}
TIMES = {
    "morning": "ráno",
    "noon": "v poledne",
    "evening": "večer",
    "night": "v noci",
    "sun": "za slunečného dne",
    "wind": "za větrného dne",
    "cold": "za chladného dne",
    "rain": "v dešti",
    "snow": "ve sněhu",
    "fog": "v mlze",
}
SIDES = {"left": "vlevo", "right": "vpravo"}
RELATIONS = {  # preposition, case
    "next to": ("vedle", "genitive"),
    "in front of": ("před", "instrumental"),
    "behind": ("za", "instrumental"),
}

ACTIONS = {  # third person singular and plural, then the preposition and the case of the object
    "": ("je", "jsou"),  # in "existing" and "beside"
    "sleep": ("spí", "spí"),
    "sit": ("sedí", "sedí"),
    "stand": ("stojí", "stojí"),
    "lie": ("leží", "leží"),
    "walk": ("kráčí", "kráčejí"),
    "run": ("běží", "běží"),
    "jump": ("skáče", "skáčou"),
    "wait": ("čeká", "čekají"),
    "dance": ("tančí", "tančí"),
    "sing": ("zpívá", "zpívají"),
    "read": ("čte", "čtou"),
    "work": ("pracuje", "pracují"),
    "eat": ("jí", "jedí"),
    "wave": ("mává", "mávají"),
    "cry": ("pláče", "pláčou"),
    "hold": ("drží", "drží", "", "accusative"),
    "carry": ("nese", "nesou", "", "accusative"),
    "watch": ("pozoruje", "pozorují", "", "accusative"),
    "photograph": ("fotografuje", "fotografují", "", "accusative"),
    "draw": ("kreslí", "kreslí", "", "accusative"),
    "wash": ("myje", "myjí", "", "accusative"),
    "buy": ("kupuje", "kupují", "", "accusative"),
    "push": ("tlačí", "tlačí", "", "accusative"),
    "repair": ("opravuje", "opravují", "", "accusative"),
    "point": ("ukazuje", "ukazují", "na ", "accusative"),
    "seek": ("hledá", "hledají", "", "accusative"),
    "feed": ("krmí", "krmí", "", "accusative"),
    "stroke": ("hladí", "hladí", "", "accusative"),
    "follow": ("sleduje", "sledují", "", "accusative"),
    "greet": ("zdraví", "zdraví", "", "accusative"),
    "await": ("čeká", "čekají", "na ", "accusative"),
    "ride": ("jede", "jedou", "na ", "locative"),
}
PRONOUNS = {"male": "on", "female": "ona"}


def sentence(scene: Scene) -> str:
    """Return the caption in Czech.

    Args:
        scene: the scene.

    Example:
        >>> sentence(Scene("doing", "park", "", "day", "", Entity("dog", count=2), "sleep"))
        'Dva psi spí v parku.'
    """
    subject, place = _phrase(scene.subject, "nominative"), _place(scene)
    many = scene.subject.count > 1 or scene.pattern == "pair"
    if scene.pattern == "existing":
        parts = (place, subject)
    elif scene.pattern == "beside":
        preposition, case = RELATIONS[scene.relation]
        parts = (f"{preposition} {_phrase(scene.object, case)}", subject)
    elif scene.pattern == "pair":
        parts = (f"{subject} a {_phrase(scene.object, 'nominative')}", place)
    elif scene.pattern == "together":
        parts = (subject, _before("s", _phrase(scene.object, "instrumental")), place)
    elif scene.pattern == "acting":  # what is new, the object, comes last
        _, _, preposition, case = ACTIONS[scene.action]
        parts = (subject, place, preposition + _phrase(scene.object, case))
    else:
        parts = (subject, place)
    first, *rest = *opening(scene, TIMES, SIDES), *parts  # between them, in second place, the verb
    return written(" ".join([first, ACTIONS[scene.action][many], *rest]))


def forms(entity: Entity) -> tuple[str, ...]:
    """Return every form of the entity's word that a caption can hold.

    Args:
        entity: the entity.

    Example:
        >>> forms(Entity("bow", sense="ribbon"))
        ('mašle', 'mašli', 'mašlí')
    """
    return (PRONOUNS[entity.sex],) if entity.pronoun else tuple(dict.fromkeys(NOUNS[entity.key][1:]))


def _phrase(entity: Entity, case: str) -> str:
    if entity.pronoun:
        return PRONOUNS[entity.sex]
    gender, *nouns = NOUNS[entity.key]
    many = entity.count > 1
    if many:  # the plural has two cases here: nominative and accusative
        gender = PLURAL_GENDERS.get(entity.kind, gender)
        noun = nouns[5 if case == "nominative" else 6]
        words = ["tři" if entity.count == 3 else "dva" if gender in ("ma", "mi") else "dvě"]
    else:
        noun, words = nouns[CASES.index(case)], []
    if entity.said_size:
        words.append(_agreed(entity.said_size, gender, case, many))
    if entity.said_colour and not entity.clothing:
        words.append(_agreed(entity.colour, gender, case, many))
    words.append(noun)
    if entity.said_colour and entity.clothing:
        words.append(_clothing(entity))
    return " ".join(words)


def _agreed(adjective: str, gender: str, case: str, many: bool) -> str:
    stem, animate_plural = ADJECTIVES[adjective]
    if not many:
        return stem + ENDINGS[gender][CASES.index(case)]
    if gender == "ma" and case == "nominative":
        return animate_plural
    return stem + ("á" if gender == "n" else "é")


def _clothing(entity: Entity) -> str:
    gender, singular, plural = CLOTHES[entity.clothing]
    if entity.count > 1:
        return _before("v", f"{ADJECTIVES[entity.colour][0]}ých {plural}")
    return _before("v", f"{_agreed(entity.colour, gender, 'locative', False)} {singular}")


def _place(scene: Scene) -> str:
    gender, preposition, noun = SETTINGS[scene.setting]
    if scene.setting_size:
        case = "genitive" if preposition == "u" else "locative"
        noun = f"{_agreed(scene.setting_size, gender, case, False)} {noun}"
    return _before(preposition, noun)


def _before(preposition: str, text: str) -> str:
    """Put "v" or "s" before a text, with the vowel that they take before consonants like their own."""
    if preposition == "v" and text.startswith(("v", "f", "st", "sk", "žl")):
        preposition = "ve"
    elif preposition == "s" and text.startswith(("s", "z", "š", "ž", "ps")):
        preposition = "se"
    return f"{preposition} {text}"
