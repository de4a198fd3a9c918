"""List the exceptions of spaCy's English tokenizer: contractions, abbreviations, emoticons, units.

After explosion/spaCy 3.8 (MIT) `spacy/lang/en/tokenizer_exceptions.py` and `spacy/lang/tokenizer_exceptions.py`.
"""

# ruff: noqa: RUF001, SIM905 -- lists of signs, and lists of words read best as text

from collections.abc import Iterator

NOT_CUT = "Ill ill Its its Hell hell Shell shell Shed shed were Were Well well Whore whore".split()

WHOLE = r"""
' \") <space> '' C++ doin goin nothin nuthin ol somethin 'em 'll 'nuff em ll nuff 'S 's ‘S ‘s and/or w/o 're 'Cause
'cause 'cos 'Cos 'coz 'Coz 'cuz 'Cuz 'bout ma'am Ma'am o'clock O'clock lovin' Lovin' lovin Lovin havin' Havin' havin
Havin doin' Doin' Doin goin' Goin' Goin nothin' Nothin' Nothin nuthin' Nuthin' Nuthin ol' Ol' Ol somethin' Somethin'
Somethin Mt. Ak. Ala. Apr. Ariz. Ark. Aug. Calif. Colo. Conn. Dec. Del. Feb. Fla. Ga. Ia. Id. Ill. Ind. Jan. Jul. Jun.
Kan. Kans. Ky. La. Mar. Mass. Mich. Minn. Miss. N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nebr. Nev. Nov. Oct. Okla. Ore. Pa.
S.C. Sep. Sept. Tenn. Va. Wash. Wis. 'd a.m. Adm. Bros. co. Co. Corp. D.C. Dr. e.g. E.g. E.G. Gen. Gov. i.e. I.e. I.E.
Inc. Jr. Ltd. Md. Messrs. Mo. Mont. Mr. Mrs. Ms. p.m. Ph.D. Prof. Rep. Rev. Sen. St. vs. v.s. ä. ö. ü. \t \n —
:) :-) :)) :-)) :))) :-))) (: (-: =) (= :] :-] [: [-: [= =] :o) (o: :} :-} 8) 8-) (-8 ;) ;-) (; (-; :( :-( :(( :-((
:((( :-((( ): )-: =( >:( :') :'-) :'( :'-( :/ :-/ =/ =| :| :-| ]= =[ :1 :P :-P :p :-p :O :-O :o :-o :0 :-0 :() >:o :*
:-* :3 :-3 =3 :> :-> :X :-X :x :-x :D :-D ;D ;-D =D xD XD xDD XDD 8D 8-D ^_^ ^__^ ^___^ >.< >.> <.< ._. ;_; -_-
-__- v.v V.V v_v V_V o_o o_O O_o O_O 0_o o_0 0_0 o.O O.o O.O o.o 0.0 o.0 0.o @_@ <3 <33 <333 </3 (^_^) (-_-) (._.)
(>_<) (*_*) (¬_¬) ಠ_ಠ ಠ︵ಠ (ಠ_ಠ) ¯\(ツ)/¯ (╯°□°）╯︵┻━┻ ><(((*>
""".split()

CUT = """
y'|all y|all how|'d|'y How|'d|'y not|'ve not|ve Not|'ve Not|ve can|not Can|not gon|na Gon|na got|ta Got|ta let|'s Let|'s
c'm|on C'm|on i|'m i|m i|'m|a i|m|a I|'m I|m I|'m|a I|m|a
""".split()

AFTER_DIGIT = """
+ km km² km³ m m² m³ dm dm² dm³ cm cm² cm³ mm mm² mm³ ha µm nm yd in ft kg g mg µg t lb oz m/s km/h kmh mph hPa Pa mbar
mb MB kb KB gb GB tb TB T G M K % км км² км³ м м² м³ дм дм² дм³ см см² см³ мм мм² мм³ нм кг г мг м/с км/ч кПа Па мбар
Кб КБ кб Мб МБ мб Гб ГБ гб Тб ТБ $ £ € ¥ ฿ US$ C$ A$ ₽ ﷼ ₴ ₠ ₡ ₢ ₣ ₤ ₥ ₦ ₧ ₨ ₩ ₪ ₫ ₭ ₮ ₯ ₰ ₱ ₲ ₳ ₵ ₶ ₷ ₸ ₹ ₺ ₻ ₼ ₾ ₿
тбكم كم كم² كم³ م م² م³ سم سم² سم³ مم مم² مم³ غرام جرام جم كغ ملغ كوب اكواب
""".split()
"""Units and currencies that are a word of their own after a digit."""

_DENIED = "ca could do does did had may might must need ought sha should wo would".split()
_ONLY_DENIED = "ai are is was were have has dare".split()
_SUPPOSED = "could might must should would".split()
_SINGULAR = "who what when where why how there that this".split()
_PLURAL = "these those".split()


def exceptions() -> dict[str, tuple[str, ...]]:
    """Return every exception with the words that it is cut into."""
    cuts = {"".join(parts): parts for parts in _parts()}
    curly = {word.replace("'", "’"): tuple(part.replace("'", "’") for part in parts) for word, parts in cuts.items()}
    return {word: parts for word, parts in (curly | cuts).items() if word not in NOT_CUT}


def _parts() -> Iterator[tuple[str, ...]]:
    for word in WHOLE:
        yield (word,)
    for letter in "abcdefghijklmnopqrstuvwxyz":
        yield (f"{letter}.",)
    for unit in "cfkCFK":
        yield "°", unit, "."
    for word in CUT:
        yield tuple(word.split("|"))
    for hour in range(1, 13):
        for period in ("a.m.", "am", "p.m.", "pm"):
            yield str(hour), period
    for lower, endings in _endings():
        for word in (lower, lower.title()):
            for ending in endings:
                plain = ending.replace("'", "")
                yield word, *_cut_ending(ending)
                yield word, *_cut_ending(plain)


def _endings() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield words with the contractions that may follow them, written with apostrophes."""
    for word in "i you he she it we they".split():
        yield word, ("'ll", "'ll've", "'d", "'d've")
    for word in "i you we they".split():
        yield word, ("'ve",)
    for word in "you we they".split():
        yield word, ("'re",)
    for word in "he she it".split():
        yield word, ("'s",)
    for word in (*_SINGULAR, *_PLURAL):
        yield word, ("'ll", "'ll've", "'d", "'d've")
        yield word, ("'s",) if word not in _PLURAL else ()
        yield word, ("'re", "'ve") if word not in ("that", "this") else ()
    for word in _DENIED:
        yield word, ("n't", "n't've")
    for word in _SUPPOSED:
        yield word, ("'ve",)
    for word in _ONLY_DENIED:
        yield word, ("n't",)


def _cut_ending(ending: str) -> tuple[str, ...]:
    """Cut `n't've` into `n't` and `'ve`, with or without apostrophes."""
    for last in ("'ve", "ve"):
        if ending.endswith(last) and ending not in ("'ve", "ve"):
            return ending.removesuffix(last), last
    return (ending,)
