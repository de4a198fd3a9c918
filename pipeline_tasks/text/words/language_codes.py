"""Write the language labels of models in one form: the shortest ISO 639 code, and the script separately."""

import re
from dataclasses import dataclass


def _pairs(listed: str) -> dict[str, str]:
    """Read `aar:aa abk:ab` as {aar: aa, abk: ab}."""
    return dict(re.findall(r"(\w+):(\w+)", listed))


SHORT = _pairs(
    """
    aar:aa abk:ab afr:af aka:ak amh:am ara:ar arg:an asm:as ava:av ave:ae aym:ay aze:az bak:ba bam:bm bel:be ben:bn
    bis:bi bod:bo bos:bs bre:br bul:bg cat:ca ces:cs cha:ch che:ce chu:cu chv:cv cor:kw cos:co cre:cr cym:cy dan:da
    deu:de div:dv dzo:dz ell:el eng:en epo:eo est:et eus:eu ewe:ee fao:fo fas:fa fij:fj fin:fi fra:fr fry:fy ful:ff
    gla:gd gle:ga glg:gl glv:gv grn:gn guj:gu hat:ht hau:ha hbs:sh heb:he her:hz hin:hi hmo:ho hrv:hr hun:hu hye:hy
    ibo:ig ido:io iii:ii iku:iu ile:ie ina:ia ind:id ipk:ik isl:is ita:it jav:jv jpn:ja kal:kl kan:kn kas:ks kat:ka
    kau:kr kaz:kk khm:km kik:ki kin:rw kir:ky kom:kv kon:kg kor:ko kua:kj kur:ku lao:lo lat:la lav:lv lim:li lin:ln
    lit:lt ltz:lb lub:lu lug:lg mah:mh mal:ml mar:mr mkd:mk mlg:mg mlt:mt mon:mn mri:mi msa:ms mya:my nau:na nav:nv
    nbl:nr nde:nd ndo:ng nep:ne nld:nl nno:nn nor:no nya:ny oci:oc oji:oj ori:or orm:om oss:os pan:pa pli:pi pol:pl
    por:pt pus:ps que:qu roh:rm ron:ro run:rn rus:ru sag:sg san:sa sin:si slk:sk slv:sl sme:se smo:sm sna:sn snd:sd
    som:so sot:st spa:es sqi:sq srd:sc srp:sr ssw:ss sun:su swa:sw swe:sv tah:ty tam:ta tat:tt tel:te tgk:tg tgl:tl
    tha:th tir:ti ton:to tsn:tn tso:ts tuk:tk tur:tr twi:tw uig:ug ukr:uk urd:ur uzb:uz ven:ve vie:vi vol:vo wln:wa
    wol:wo xho:xh yid:yi yor:yo zha:za zho:zh zul:zu
    """
)
"""ISO 639-3 codes of the languages that have an ISO 639-1 code."""

MEMBERS = _pairs(
    """
    als:sq arb:ar ayr:ay azj:az cmn:zh ekk:et esk:ik fat:ak fil:tl fuc:ff gaz:om gug:gn ike:iu khk:mn kmr:ku knc:kr
    kng:kg kpv:kv lvs:lv nb:no nob:no npi:ne ojg:oj ory:or pbt:ps pbu:ps pes:fa plt:mg quy:qu quz:qu src:sc swh:sw
    uzn:uz ydd:yi zsm:ms zyb:za
    """
)
"""The usual member of an ISO 639-3 macrolanguage -> the macrolanguage's code (Unicode CLDR, supplemental aliases);
also members that only GlotLID and NLLB use, and Bokmal, which lid.176 calls `no`."""

ALEMANNIC = "als"
"""Without a script this is Alemannic, as Wikipedia and so lid.176 name it; with one it is ISO's Tosk Albanian."""

_LABEL = re.compile(r"(?P<code>[A-Za-z]{2,3})(?:[_-](?P<script>[A-Za-z]{4}))?(?:[_-][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True, order=True)
class Language:
    """A language and its script; the script is empty if the label has none."""

    language: str
    script: str = ""

    def __str__(self) -> str:
        """Return `sr-Cyrl`, or `sr` where no script is known."""
        return f"{self.language}-{self.script}" if self.script else self.language


def parse_language(label: str) -> Language:
    """Return what a label means: `eng_Latn`, `eng-Latn`, `eng` and `en` are `en`, `srp_Cyrl` is `sr` in `Cyrl`.

    Languages without an ISO 639-1 code keep their ISO 639-3 code; what has not the form of a code comes as it is.
    """
    match = _LABEL.fullmatch(label)
    if not match:
        return Language(label)
    code, script = match["code"].lower(), (match["script"] or "").title()
    if code == ALEMANNIC and not script:
        return Language(code)
    return Language(MEMBERS.get(code) or SHORT.get(code, code), script)
