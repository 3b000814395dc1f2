"""Scenes in Chinese: measure words, 正在, the place before the verb, no spaces."""

from kzoo.scenes.caption import opening
from kzoo.scenes.scene import Entity, Scene

NOUNS = {  # noun, measure word
    "man": ("男子", "名"),
    "woman": ("女子", "名"),
    "boy": ("男孩", "个"),
    "girl": ("女孩", "个"),
    "child": ("孩子", "个"),
    "teacher/male": ("老师", "位"),
    "teacher/female": ("老师", "位"),
    "doctor/male": ("医生", "位"),
    "doctor/female": ("医生", "位"),
    "student/male": ("大学生", "名"),
    "student/female": ("大学生", "名"),
    "singer/male": ("歌手", "名"),
    "singer/female": ("歌手", "名"),
    "farmer/male": ("农民", "名"),
    "farmer/female": ("农民", "名"),
    "dog": ("狗", "只"),
    "cat": ("猫", "只"),
    "bird": ("鸟", "只"),
    "duck": ("鸭子", "只"),
    "rabbit": ("兔子", "只"),
    "horse": ("马", "匹"),
    "cow": ("奶牛", "头"),
    "sheep": ("绵羊", "只"),
    "goat": ("山羊", "只"),
    "donkey": ("驴", "头"),
    "camel": ("骆驼", "匹"),
    "monkey": ("猴子", "只"),
    "pig": ("猪", "头"),
    "ball": ("球", "个"),
    "book": ("书", "本"),
    "bag": ("包", "个"),
    "umbrella": ("雨伞", "把"),
    "guitar": ("吉他", "把"),
    "kite": ("风筝", "只"),
    "cup": ("杯子", "个"),
    "basket": ("篮子", "个"),
    "hat": ("帽子", "顶"),
    "lamp": ("灯", "盏"),
    "flower": ("花", "朵"),
    "apple": ("苹果", "个"),
    "alarm clock": ("闹钟", "个"),
    "bottle": ("瓶子", "个"),
    "drum": ("鼓", "面"),
    "flag": ("旗子", "面"),
    "picture": ("画", "幅"),
    "key": ("钥匙", "把"),
    "candle": ("蜡烛", "根"),
    "bucket": ("桶", "只"),
    "camera": ("相机", "台"),
    "plate": ("盘子", "个"),
    "spoon": ("勺子", "把"),
    "brush": ("刷子", "把"),
    "box": ("箱子", "个"),
    "chair": ("椅子", "把"),
    "table": ("桌子", "张"),
    "bicycle": ("自行车", "辆"),
    "ladder": ("梯子", "架"),
    "car": ("汽车", "辆"),
    "boat": ("船", "条"),
    "cart": ("手推车", "辆"),
    "tree": ("树", "棵"),
    "bench": ("长凳", "条"),
    "bat/club": ("球棒", "根"),
    "bat/animal": ("蝙蝠", "只"),
    "crane/machine": ("起重机", "台"),
    "crane/bird": ("鹤", "只"),
    "mouse/device": ("鼠标", "个"),
    "mouse/animal": ("老鼠", "只"),
    "seal/stamp": ("印章", "枚"),
    "seal/animal": ("海豹", "只"),
    "trunk/box": ("皮箱", "只"),
    "trunk/tree": ("树干", "根"),
    "pipe/smoking": ("烟斗", "个"),
    "pipe/tube": ("管子", "根"),
    "bow/weapon": ("弓", "把"),
    "bow/ribbon": ("蝴蝶结", "个"),
}
NUMBERS = {1: "一", 2: "两", 3: "三"}
SIZES = {"small": "小", "big": "大", "old": "老"}
AGES = {"young": "年轻", "old": "年长的"}  # of grown people; animals are 老
GROWN = ("名", "位")  # their measure words
COLOURS = {
    "red": "红色",
    "blue": "蓝色",
    "green": "绿色",
    "yellow": "黄色",
    "white": "白色",
    "black": "黑色",
    "brown": "棕色",
    "grey": "灰色",
}
CLOTHES = {  # one wears (穿) a coat but puts on (戴) a hat
    "coat": ("穿着", "大衣"),
    "jacket": ("穿着", "夹克"),
    "shirt": ("穿着", "衬衫"),
    "sweater": ("穿着", "毛衣"),
    "hat": ("戴着", "帽子"),
    "scarf": ("戴着", "围巾"),
}

SETTINGS = {  # noun, what "in", "on", "at" is after it
    "park": ("公园", "里"),
    "street": ("街道", "上"),
    "beach": ("海滩", "上"),
    "garden": ("花园", "里"),
    "forest": ("森林", "里"),
    "meadow": ("草地", "上"),
    "field": ("田地", "里"),
    "bridge": ("桥", "上"),
    "market": ("市场", "里"),
    "playground": ("游乐场", "里"),
    "square": ("广场", "上"),
    "river": ("河", "边"),
    "lake": ("湖", "边"),
    "station": ("火车站", ""),
    "farm": ("农场", "里"),
    "yard": ("院子", "里"),
    "mountain": ("山", "上"),
    "kitchen": ("厨房", "里"),
    "living room": ("客厅", "里"),
    "library": ("图书馆", "里"),
    "café": ("咖啡馆", "里"),
    "classroom": ("教室", "里"),
    "shop": ("商店", "里"),
    "garage": ("车库", "里"),
    "museum": ("博物馆", "里"),
    "office": ("办公室", "里"),
}
TIMES = {
    "morning": "早上",
    "noon": "中午",
    "evening": "傍晚",
    "night": "夜里",
    "sun": "在一个晴朗的日子里",
    "wind": "在一个刮风的日子里",
    "cold": "在一个寒冷的日子里",
    "rain": "雨中",
    "snow": "雪中",
    "fog": "雾中",
}
SIDES = {"left": "左边", "right": "右边"}
RELATIONS = {"next to": "旁边", "in front of": "前面", "behind": "后面"}

ACTIONS = {
    "sleep": "睡觉",
    "walk": "散步",
    "run": "奔跑",
    "jump": "跳跃",
    "wait": "等待",
    "dance": "跳舞",
    "sing": "唱歌",
    "read": "看书",
    "work": "工作",
    "eat": "吃东西",
    "wave": "挥手",
    "cry": "哭",
    "hold": "拿着",
    "carry": "提着",
    "watch": "看着",
    "photograph": "拍摄",
    "draw": "画",
    "wash": "清洗",
    "buy": "买",
    "push": "推着",
    "repair": "修理",
    "point": "指着",
    "seek": "寻找",
    "feed": "喂",
    "stroke": "抚摸",
    "follow": "跟着",
    "greet": "问候",
    "await": "等待",
    "ride": "骑着",
}
POSTURES = {"sit": "坐", "stand": "站", "lie": "躺"}  # the place follows: 正坐在公园里
PRONOUNS = {"male": "他", "female": "她"}


def sentence(scene: Scene) -> str:
    """Return the caption in Chinese.

    Args:
        scene: the scene.

    Example:
        >>> sentence(Scene("doing", "park", "", "day", "", Entity("dog"), "sleep"))
        '一只狗正在公园里睡觉。'
    """
    subject, place = _phrase(scene.subject), _place(scene)
    if scene.pattern == "existing":
        text = f"{place}有{subject}"
    elif scene.pattern == "beside":
        text = f"{_phrase(scene.object)}{RELATIONS[scene.relation]}有{subject}"
    else:
        if scene.pattern == "pair":
            subject = f"{subject}和{_phrase(scene.object)}"
        company = f"和{_phrase(scene.object)}一起" if scene.pattern == "together" else ""
        if scene.action in POSTURES:
            text = f"{subject}正{company}{POSTURES[scene.action]}在{place}"
        else:
            text = f"{subject}正在{place}{company}{ACTIONS[scene.action]}"
        if scene.pattern == "acting":
            text += _phrase(scene.object)
    return "，".join([*opening(scene, TIMES, SIDES), text]) + "。"


def forms(entity: Entity) -> tuple[str, ...]:
    """Return every form of the entity's word: one, since Chinese nouns do not change.

    Args:
        entity: the entity.

    Example:
        >>> forms(Entity("bat", sense="animal"))
        ('蝙蝠',)
    """
    return (PRONOUNS[entity.sex],) if entity.pronoun else (NOUNS[entity.key][0],)


def _phrase(entity: Entity) -> str:
    if entity.pronoun:
        return PRONOUNS[entity.sex]
    noun, measure = NOUNS[entity.key]
    text = NUMBERS[entity.count] + measure
    if entity.said_colour:
        wearing, clothing = CLOTHES.get(entity.clothing, ("", ""))
        text += f"{wearing}{COLOURS[entity.colour]}{clothing}的"
    if not entity.said_size:
        return text + noun
    return text + (AGES if measure in GROWN else SIZES)[entity.said_size] + noun


def _place(scene: Scene) -> str:
    noun, where = SETTINGS[scene.setting]
    return (SIZES[scene.setting_size] if scene.setting_size else "") + noun + where
