"""Scenes in Indonesian: classifiers, adjectives after the noun, "sedang", and "dia" for he and she."""

from kzoo.scenes.caption import opening, written
from kzoo.scenes.scene import Entity, Scene

PERSON, ANIMAL, THING = "orang", "ekor", "buah"  # classifiers
NOUNS = {  # noun, classifier
    "man": ("pria", PERSON),
    "woman": ("wanita", PERSON),
    "boy": ("anak laki-laki", PERSON),
    "girl": ("anak perempuan", PERSON),
    "child": ("anak", PERSON),
    "teacher/male": ("guru", PERSON),
    "teacher/female": ("guru", PERSON),
    "doctor/male": ("dokter", PERSON),
    "doctor/female": ("dokter", PERSON),
    "student/male": ("mahasiswa", PERSON),
    "student/female": ("mahasiswi", PERSON),
    "singer/male": ("penyanyi", PERSON),
    "singer/female": ("penyanyi", PERSON),
    "farmer/male": ("petani", PERSON),
    "farmer/female": ("petani", PERSON),
    "dog": ("anjing", ANIMAL),
    "cat": ("kucing", ANIMAL),
    "bird": ("burung", ANIMAL),
    "duck": ("bebek", ANIMAL),
    "rabbit": ("kelinci", ANIMAL),
    "horse": ("kuda", ANIMAL),
    "cow": ("sapi", ANIMAL),
    "sheep": ("domba", ANIMAL),
    "goat": ("kambing", ANIMAL),
    "donkey": ("keledai", ANIMAL),
    "camel": ("unta", ANIMAL),
    "monkey": ("monyet", ANIMAL),
    "pig": ("babi", ANIMAL),
    "ball": ("bola", THING),
    "book": ("buku", THING),
    "bag": ("tas", THING),
    "umbrella": ("payung", THING),
    "guitar": ("gitar", THING),
    "kite": ("layang-layang", THING),
    "cup": ("cangkir", THING),
    "basket": ("keranjang", THING),
    "hat": ("topi", THING),
    "lamp": ("lampu", THING),
    "flower": ("bunga", "tangkai"),
    "apple": ("apel", THING),
    "alarm clock": ("jam weker", THING),
    "bottle": ("botol", THING),
    "drum": ("drum", THING),
    "flag": ("bendera", THING),
    "picture": ("lukisan", THING),
    "key": ("kunci", THING),
    "candle": ("lilin", "batang"),
    "bucket": ("ember", THING),
    "camera": ("kamera", THING),
    "plate": ("piring", THING),
    "spoon": ("sendok", THING),
    "brush": ("sikat", THING),
    "box": ("kotak", THING),
    "chair": ("kursi", THING),
    "table": ("meja", THING),
    "bicycle": ("sepeda", THING),
    "ladder": ("tangga", THING),
    "car": ("mobil", THING),
    "boat": ("perahu", THING),
    "cart": ("gerobak", THING),
    "tree": ("pohon", "batang"),
    "bench": ("bangku", THING),
    "bat/club": ("pemukul", THING),
    "bat/animal": ("kelelawar", ANIMAL),
    "crane/machine": ("derek", THING),
    "crane/bird": ("burung jenjang", ANIMAL),
    "mouse/device": ("tetikus", THING),
    "mouse/animal": ("tikus", ANIMAL),
    "seal/stamp": ("segel", THING),
    "seal/animal": ("anjing laut", ANIMAL),
    "trunk/box": ("peti", THING),
    "trunk/tree": ("batang pohon", THING),
    "pipe/smoking": ("cangklong", THING),
    "pipe/tube": ("pipa", THING),
    "bow/weapon": ("busur", THING),
    "bow/ribbon": ("pita", THING),
}
NUMBERS = {2: "dua", 3: "tiga"}
ADJECTIVES = {
    "small": "kecil",
    "big": "besar",
    "young": "muda",
    "old": "tua",
    "red": "merah",
    "blue": "biru",
    "green": "hijau",
    "yellow": "kuning",
    "white": "putih",
    "black": "hitam",
    "brown": "cokelat",
    "grey": "abu-abu",
}
CLOTHES = {  # "wearing a"
    "coat": "bermantel",
    "jacket": "berjaket",
    "shirt": "berkemeja",
    "sweater": "bersweter",
    "hat": "bertopi",
    "scarf": "bersyal",
}

SETTINGS = {
    "park": "di taman",
    "street": "di jalan",
    "beach": "di pantai",
    "garden": "di kebun",
    "forest": "di hutan",
    "meadow": "di padang rumput",
    "field": "di ladang",
    "bridge": "di jembatan",
    "market": "di pasar",
    "playground": "di taman bermain",
    "square": "di alun-alun",
    "river": "di tepi sungai",
    "lake": "di tepi danau",
    "station": "di stasiun",
    "farm": "di peternakan",
    "yard": "di halaman",
    "mountain": "di gunung",
    "kitchen": "di dapur",
    "living room": "di ruang tamu",
    "library": "di perpustakaan",
    "café": "di kafe",
    "classroom": "di ruang kelas",
    "shop": "di toko",
    "garage": "di garasi",
    "museum": "di museum",
    "office": "di kantor",
}
TIMES = {
    "morning": "di pagi hari",
    "noon": "di siang hari",
    "evening": "di sore hari",
    "night": "di malam hari",
    "sun": "pada hari yang cerah",
    "wind": "pada hari yang berangin",
    "cold": "pada hari yang dingin",
    "rain": "di tengah hujan",
    "snow": "di tengah salju",
    "fog": "di tengah kabut",
}
SIDES = {"left": "di sebelah kiri", "right": "di sebelah kanan"}
RELATIONS = {"next to": "di samping", "in front of": "di depan", "behind": "di belakang"}

ACTIONS = {
    "sleep": "tidur",
    "sit": "duduk",
    "stand": "berdiri",
    "lie": "berbaring",
    "walk": "berjalan",
    "run": "berlari",
    "jump": "melompat",
    "wait": "menunggu",
    "dance": "menari",
    "sing": "bernyanyi",
    "read": "membaca",
    "work": "bekerja",
    "eat": "makan",
    "wave": "melambaikan tangan",
    "cry": "menangis",
    "hold": "memegang",
    "carry": "membawa",
    "watch": "memandangi",
    "photograph": "memotret",
    "draw": "menggambar",
    "wash": "mencuci",
    "buy": "membeli",
    "push": "mendorong",
    "repair": "memperbaiki",
    "point": "menunjuk",
    "seek": "mencari",
    "feed": "memberi makan",
    "stroke": "mengelus",
    "follow": "mengikuti",
    "greet": "menyapa",
    "await": "menunggu",
    "ride": "menunggang",
}
PRONOUN = "dia"  # he and she


def sentence(scene: Scene) -> str:
    """Return the caption in Indonesian.

    Args:
        scene: the scene.

    Example:
        >>> sentence(Scene("doing", "park", "", "day", "", Entity("dog", count=2), "sleep"))
        'Dua ekor anjing sedang tidur di taman.'
    """
    subject, place = _phrase(scene.subject), _place(scene)
    if scene.pattern == "existing":
        text = f"ada {subject} {place}"
    elif scene.pattern == "beside":
        text = f"ada {subject} {RELATIONS[scene.relation]} {_phrase(scene.object)}"
    else:
        if scene.pattern == "pair":
            subject = f"{subject} dan {_phrase(scene.object)}"
        partner = {"acting": " ", "together": " bersama "}.get(scene.pattern)
        partner = "" if partner is None else partner + _phrase(scene.object)
        text = f"{subject} sedang {ACTIONS[scene.action]}{partner} {place}"
    return written(", ".join([*opening(scene, TIMES, SIDES), text]))


def forms(entity: Entity) -> tuple[str, ...]:
    """Return every form of the entity's word: one, since Indonesian nouns do not change.

    Args:
        entity: the entity.

    Example:
        >>> forms(Entity("bat", sense="animal"))
        ('kelelawar',)
    """
    return (PRONOUN,) if entity.pronoun else (NOUNS[entity.key][0],)


def _phrase(entity: Entity) -> str:
    if entity.pronoun:
        return PRONOUN
    noun, classifier = NOUNS[entity.key]
    words = [f"se{classifier}" if entity.count == 1 else f"{NUMBERS[entity.count]} {classifier}", noun]
    if entity.said_size:
        words.append(ADJECTIVES[entity.said_size])
    if entity.said_colour and entity.clothing:
        words += [CLOTHES[entity.clothing], ADJECTIVES[entity.colour]]
    elif entity.said_colour:  # "berwarna" ("coloured") keeps two adjectives apart
        words += ["berwarna"] * bool(entity.said_size) + [ADJECTIVES[entity.colour]]
    return " ".join(words)


def _place(scene: Scene) -> str:
    place = SETTINGS[scene.setting]
    return f"{place} {ADJECTIVES[scene.setting_size]}" if scene.setting_size else place
