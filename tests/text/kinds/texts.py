"""Texts of each type of document, written for the tests."""

# ruff: noqa: RUF001 -- Cyrillic and wide signs

from typing import NamedTuple


class Sample(NamedTuple):
    """A text with the type that a reader gives it."""

    kind: str
    language: str
    url: str
    text: str


PROSE = (
    "The river rose again on Monday, and the people of the valley spent the night on the hill above the church. "
    "According to the mayor, forty houses are under water. She said that the government had promised new dams years ago. "
    "Nobody was hurt, police reported yesterday. The company that runs the ferry will take children to school for free. "
    "My neighbor told me that he had never seen so much rain in one week."
)

SAMPLES = (
    Sample("article", "en", "https://paper.example/news/2026/11/river", f"River floods valley\n\n{PROSE}\n\n{PROSE}"),
    Sample(
        "article",
        "de",
        "https://zeitung.example/artikel/fluss",
        "Der Fluss steigt wieder\n\nAm Montag stieg das Wasser bis an die Kirche, sagte die Bürgermeisterin. Nach Angaben "
        "der Polizei wurde niemand verletzt. Die Regierung hatte vor Jahren neue Dämme versprochen. Er habe noch nie so "
        "viel Regen gesehen, erzählte ein Nachbar. Das Unternehmen bringt die Kinder mit der Fähre zur Schule. Viele "
        "Menschen blieben die Nacht über auf dem Hügel.",
    ),
    Sample(
        "forum",
        "en",
        "https://garden.example/forum/viewtopic.php?t=81",
        "Slugs on my beans\n\nPosted by moss » Mon 3:14\n\nThey eat everything. What can I do? Thanks in advance.\n\n"
        "Quote\n\nJunior member\nJoined: 2024\nPosts: 12\n\nReply to moss: put copper around the bed.\n\n"
        "Senior member\nPosts: 904\n\nLog in to reply",
    ),
    Sample(
        "forum",
        "de",
        "https://garten.example/threads/schnecken.4711/",
        "Schnecken an den Bohnen\n\nVerfasst am: 3. Mai\n\nSie fressen alles. Was tun?\n\nZitieren\n\n"
        "Themenstarter\nRegistriert: 2019\nBeiträge: 4\n\nAntwort auf moos: Kupferband hilft.\n\nZitieren",
    ),
    Sample(
        "product",
        "en",
        "https://tools.example/product/axe-200",
        "Axe 200\n\n$49.00\n\nIn stock. Free shipping.\n\nAdd to cart\n\nProduct details\n\n- Weight: 1.2 kg\n"
        "- Dimensions: 60 cm\n- Warranty: 2 years\n\nCustomer reviews\n\nA fine axe that stays sharp.",
    ),
    Sample(
        "product",
        "de",
        "https://werkzeug.example/axt",
        "Axt 200\n\n49,00 EUR inkl. MwSt., zzgl. Versandkosten\n\nAuf Lager, Lieferzeit 2 Tage\n\nIn den Warenkorb\n\n"
        "Artikelnummer 4711\n\nProduktbeschreibung\n\nEine gute Axt, die scharf bleibt.",
    ),
    Sample(
        "listing",
        "en",
        "https://blog.example/category/birds/",
        "Birds\n\n"
        + "\n\n".join(f"{bird}\nRead more" for bird in ("Owls", "Crows", "Swifts", "Terns", "Gulls", "Finches"))
        + "\n\nOlder posts",
    ),
    Sample(
        "documentation",
        "en",
        "https://tool.example/docs/copy.html",
        "Copy\n\nSynopsis\n\n    tool copy [options] FILE DIRECTORY\n\nOptions\n\n- `-f` specifies the file. The default is "
        "standard input.\n- `-v` prints the name of each file.\n\nThe following example copies a file:\n\n"
        "    tool copy -v a.txt /tmp\n\nSee also the manual of `move`.",
    ),
    Sample(
        "documentation",
        "ru",
        "https://tool.example/docs/ru/copy.html",
        "Копирование\n\nКоманда копирует файл в каталог. По умолчанию параметры берутся из файла настройки.\n\n"
        "    tool copy -v a.txt /tmp\n\nПример показывает синтаксис. См. также руководство.",
    ),
    Sample(
        "code",
        "en",
        "https://host.example/tool/blob/main/copy.c",
        '#include <stdio.h>\n\nint main(int argc, char **argv) {\n    FILE *from = fopen(argv[1], "r");\n'
        "    int sign;\n    while ((sign = fgetc(from)) != EOF) {\n        putchar(sign);\n    }\n    return 0;\n}",
    ),
    Sample(
        "legal",
        "en",
        "https://shop.example/terms",
        "Terms and conditions\n\nBy using this site you agree to these terms of service. We accept no liability for "
        "damages. The governing law is that of the place of business. You shall not pass personal data of third parties "
        "on. All disputes are of the jurisdiction of its courts.",
    ),
    Sample(
        "legal",
        "de",
        "https://laden.example/datenschutz",
        "Datenschutzerklärung\n\nWir verarbeiten personenbezogene Daten nach der DSGVO. Die Haftung folgt dem Vertrag. "
        "Gerichtsstand ist unser Sitz. Jede betroffene Person kann Auskunft verlangen.",
    ),
    Sample(
        "recipe",
        "en",
        "https://kitchen.example/pancakes",
        "Pancakes\n\nIngredients\n\n- 2 cups flour\n- 1 tablespoon sugar\n- 2 eggs\n\nDirections\n\n"
        "1. Stir the flour and the sugar in a bowl.\n2. Bake each pancake for two minutes on either side.",
    ),
    Sample(
        "recipe",
        "fr",
        "https://cuisine.example/crepes",
        "Crêpes\n\nIngrédients\n\n- 250 g de farine\n- 2 œufs\n- 1 cuillère à soupe de beurre\n\nPréparation\n\n"
        "Mélanger la farine et les œufs. Cuisson : deux minutes de chaque côté.",
    ),
    Sample(
        "recipe",
        "ja",
        "https://ryori.example/1",
        "パンケーキ\n\n材料（2人分）\n\n小麦粉 大さじ5\n砂糖 小さじ1\n\n作り方\n\n混ぜて焼きます。",
    ),
    Sample(
        "reference",
        "en",
        "https://en.wikipedia.org/wiki/Ferry",
        "Ferry\n\nA ferry is a boat that carries people over water.\n\nEtymology\n\nThe word is Old Norse.\n\nReferences\n\n"
        "Further reading\n\nExternal links",
    ),
    Sample("unknown", "en", "https://site.example/a", "Hello, and welcome to our page."),
    Sample("unknown", "xx", "https://site.example/b", "Ga bu zo meu."),
)
