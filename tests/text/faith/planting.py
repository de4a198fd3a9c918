"""Reads pairs of sources and faithful rewrites, and plants contradictions in the rewrites."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAIRS, RETOLD = Path(__file__).with_name("pairs.txt"), Path(__file__).with_name("retold.json")

KINDS = {
    "fig": "figure changed",
    "figadd": "figure added",
    "unit": "unit changed",
    "date": "date changed",
    "name": "name changed",
    "nameadd": "name added",
    "pct": "percentage changed",
    "mag": "order of magnitude changed",
    "negadd": "negation added",
    "negdrop": "negation dropped",
    "language": "language changed",
    "leak": "refusal or leak",
    "invented": "sentence invented",
    "other": "text of something else",
}
"""Kinds of contradictions by their marks in `PAIRS`, and the five that need none."""

UNGROUNDED = ("invented", "other")
"""Kinds that are found only if the text is found to be invented: its names or figures may be new by chance."""

_MARK = re.compile(r"\{(\w+)\|([^|{}]*)\|([^|{}]*)\}")


class Pair(NamedTuple):
    """A source and its faithful rewrite, which still has its marks."""

    number: int
    language: str
    genre: str
    source: str
    marked: str

    @property
    def is_held_out(self) -> bool:
        """Whether nobody looks at it while rules are changed."""
        return self.number % 3 == 2

    @property
    def rewrite(self) -> str:
        """The faithful rewrite."""
        return _MARK.sub(lambda mark: mark[2], self.marked)


class Planted(NamedTuple):
    """A rewrite with a contradiction."""

    pair: Pair
    kind: str
    text: str


def read_pairs() -> list[Pair]:
    """Return all pairs in their order."""
    blocks = [
        [line for line in block.splitlines() if not line.startswith("#")]
        for block in PAIRS.read_text(encoding="utf-8").split("\n\n")
    ]
    found = [block for block in blocks if block]
    pairs = []
    for number, (head, source, rewrite) in enumerate(found):
        language, genre = head.split(" ", 1)
        pairs.append(Pair(number, language, genre, source.removeprefix("S: "), rewrite.removeprefix("R: ")))
    return pairs


def read_retold() -> list[Pair]:
    """Return faithful texts of another form than their sources: questions, summaries, lists. They leave things out."""
    sources = {(pair.language, pair.genre): pair for pair in read_pairs()}
    read = json.loads(RETOLD.read_text(encoding="utf-8"))
    return [sources[each["language"], each["genre"]]._replace(marked=each["text"]) for each in read]


def planted(pairs: list[Pair]) -> Iterator[Planted]:
    """Yield each pair's contradictions: one for each mark, and those of kinds that need none."""
    for pair in pairs:
        marks = [*_MARK.finditer(pair.marked)]
        for kind in dict.fromkeys(mark[1] for mark in marks):
            # one contradiction at a time, but for a negation that has two marks
            chosen = [mark for mark in marks if mark[1] == kind]
            for group in [chosen] if kind == "negdrop" else [[mark] for mark in chosen]:
                yield Planted(pair, kind, _with(pair.marked, {mark.start() for mark in group}))
        yield Planted(pair, "negadd", _with_negation(pair))
        yield Planted(pair, "language", FOREIGN[pair.language])
        leaks = LEAKS[pair.language]
        yield Planted(pair, "leak", leaks[pair.number % len(leaks)].replace("…", pair.rewrite))
        invented = INVENTED[pair.language]
        blank = "" if pair.language == "zh" else " "
        yield Planted(pair, "invented", f"{pair.rewrite}{blank}{invented[pair.number % len(invented)]}")
        others = [other for other in pairs if other.language == pair.language and other != pair]
        yield Planted(pair, "other", others[pair.number % len(others)].rewrite)


def _with(marked: str, planted_at: set[int]) -> str:
    return _MARK.sub(lambda mark: mark[3] if mark.start() in planted_at else mark[2], marked)


NEGATED = {
    "en": [
        (r"\b(was|were|is|are|had|has|have|can|will|should|did|took|went)\b(?! not)", r"\1 not"),
        (r"\b(\w+ed)\b", r"never \1"),
    ],
    "de": [
        (
            r"\b(war|waren|wurde|wurden|ist|sind|hat|haben|kam|muss|gibt|kann|legte|sollte|entstand|gab|beobachtete|läuft|dauert|zahlt|fängt|besuchen|traf)\b",
            r"\1 nicht",
        )
    ],
    "fr": [
        (
            r"\b(est|a|ont|sont|était|étaient|fut|fallut|mesurait|abrite|commence|verse|obtient|a privé|restait|privé|cuisez-les|franchit)\b",
            r"n'\1 pas",
        )
    ],
    "es": [
        (
            r"\b(zarpó|falló|estudió|era|fundó|prestó|alcanzó|cayó|levantaron|destruyó|probaron|cerraron|sufrió|dejó|hay|son|empieza|recibe|se paga|permite|salen|cuézalos|ponga)\b",
            r"no \1",
        )
    ],
    "zh": [
        (
            r"(出了故障|做了测量|出发|有了狼|是它们的主要猎物|取|夺冠|愈合|使用新敷料|达到|恢复供电|挖成了|创办了|赢下|跑了最后一棒|允许|进行检查|还有蝾螈|遭遇风暴|可供|断电|挡住|下降到)",
            r"没有\1",
        )
    ],
}
"""How a sentence of the rewrite is denied: the first place that fits is taken."""


def _with_negation(pair: Pair) -> str:
    """Return the rewrite with a denial in its first sentence that has none."""
    for pattern, denied in NEGATED[pair.language]:
        text, count = re.subn(pattern, denied, pair.rewrite, count=1, flags=re.IGNORECASE)
        if count:
            return text
    message = f"pair {pair.number}: nothing in it can be denied"
    raise ValueError(message)


INVENTED = {
    "en": [
        "Critics praised the elegant style and the careful preparation.",
        "Such efforts usually strengthen trust among neighbors and inspire similar initiatives elsewhere.",
        "The reader gets a clear overview, which makes the topic easy to understand.",
        "Local artists painted the entrance hall in bright colors.",
    ],
    "de": [
        "Kritiker lobten den eleganten Stil und die sorgfältige Vorbereitung.",
        "Solche Bemühungen stärken gewöhnlich das Vertrauen unter Nachbarn.",
        "Der Überblick macht das Thema leicht verständlich.",
    ],
    "fr": [
        "Les critiques saluèrent le style élégant et la préparation soignée.",
        "De tels efforts renforcent souvent la confiance entre voisins.",
        "Cet aperçu rend le sujet facile à comprendre.",
    ],
    "es": [
        "Los críticos elogiaron el estilo elegante y la cuidadosa preparación.",
        "Tales esfuerzos suelen fortalecer la confianza entre vecinos.",
        "Este resumen facilita la comprensión del tema.",
    ],
    "zh": [
        "评论家称赞其优雅风格与精心准备。",
        "这类努力通常增强邻里之间的信任。",
        "读者借此轻松理解整个主题。",
    ],
}
"""Sentences that no source has, without figures, names and negations."""

FOREIGN = {
    "en": "Die Stadt liegt an einem breiten Fluss und hat einen alten Hafen, in dem früher viele Schiffe anlegten.",
    "de": "The city lies on a wide river and has an old harbor where many ships used to land in former times.",
    "fr": "The city lies on a wide river and has an old harbor where many ships used to land in former times.",
    "es": "La ville se trouve au bord d'un large fleuve et possède un vieux port où accostaient beaucoup de navires.",
    "zh": "The city lies on a wide river and has an old harbor where many ships used to land in former times.",
}

LEAKS = {
    "en": [
        "Sure, here is the rewritten text:\n\n…",
        "As an AI language model, I cannot rewrite this text.",
        "…\n\nLet me know if you would like me to change anything.",
        "I'm sorry, but I can't help with that request.",
        "<|im_start|>assistant\n…",
        "…\n\nI hope this helps!",
        "Here's a plain version:\n…",
    ],
    "de": [
        "Gerne, hier ist der umgeschriebene Text:\n\n…",
        "Als KI-Sprachmodell kann ich diesen Text leider nicht umschreiben.",
        "…\n\nSagen Sie mir Bescheid, wenn ich noch etwas ändern soll.",
        "Es tut mir leid, aber dabei kann ich nicht helfen.",
        "[INST] …",
    ],
    "fr": [
        "Bien sûr, voici le texte reformulé :\n\n…",
        "En tant que modèle de langage, je ne peux pas réécrire ce texte.",
        "…\n\nN'hésitez pas à me dire si vous souhaitez une autre version.",
        "Je suis désolé, mais je ne peux pas vous aider.",
    ],
    "es": [
        "Claro, aquí tiene el texto reescrito:\n\n…",
        "Como modelo de lenguaje, no puedo reescribir este texto; yo no tengo permiso.",
        "…\n\nSi usted necesita otra versión, puedo escribirla.",
        "Lo siento, pero no puedo ayudarte con eso.",
    ],
    "zh": [
        "好的，以下是改写后的文本：\n\n…",
        "作为一个人工智能语言模型，我无法改写这段文字。",
        "…\n\n如果您还需要其他修改，请告诉我。",
        "抱歉，我不能帮助您完成这个请求。",
    ],
}
"""What models say around a text or in its place; `…` is the faithful rewrite."""
