"""Fills the EU's template for the public summary of training content with what the root proves.

The template is the annex of the Commission's communication C(2025) 8311 final of 5 December 2025, for Article 53(1)(d)
of Regulation (EU) 2024/1689. Its sections are kept in their order, under its titles. What only the provider knows comes
from the provider's file, and is marked as such; what nobody has given is said to be not given.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from pipeline_tasks.cards import adds
from pipeline_tasks.counted import counted
from pipeline_tasks.recipe import LAND
from refinery_rights.disclose.about import Category
from refinery_rights.disclose.counting import Amount, Domains
from refinery_rights.disclose.facts import SHOWN, Facts, cite_stage
from refinery_rights.disclose.measures import (
    filters_table,
    gates_table,
    illegal_content,
    kept_by,
    personal_data_answers,
    personal_data_table,
    reasons_table,
    rights_answers,
    rights_tables,
    stages_table,
)
from refinery_rights.disclose.origins import Crawler, SourceOrigin
from refinery_rights.disclose.page import MISSING, Answer, Cell, Page, Part, Rows, Table, provider

TEMPLATE = "C(2025) 8311 final"

BILLION, TRILLION = 10**9, 10**12

DOMAINS = "domains-{category}.csv"
"""The name of the file with the domains of a list of sources."""

LISTS: Mapping[Category, str] = {
    "public": "2.1. Publicly available datasets",
    "licensed": "2.2.1. Datasets commercially licensed by rightsholders or their representatives",
    "private": "2.2.2. Private datasets obtained from other third parties",
    "crawled": "2.3. Data crawled and scraped from online sources",
    "user": "2.4. User data",
    "synthetic": "2.5. Synthetic data",
    "other": "2.6. Other sources of data",
}

SOURCE_HEAD = ("source", "kind", "snapshot", "collected", "pulled", "terms")


def summary(facts: Facts) -> Page:
    """Return the summary of a version."""
    return Page(
        f"Summary of training content: {facts.name}",
        tuple(_lead(facts)),
        (_general(facts), *(_list(facts, category) for category in LISTS), *_processing(facts)),
        facts.evidence,
    )


def _lead(facts: Facts) -> Iterator[str]:
    yield (
        f"Template for the public summary of training content of general-purpose AI models, {TEMPLATE}, filled by "
        "Refinery from the manifests and logs of its root. [E1] and so on name what a figure was computed from; the "
        "last section has the SHA-256 of each. Text without such a mark is a statement of the provider, or says what "
        "is not recorded."
    )
    yield (
        "It describes this version of the data and nothing else: whether a model was trained on it, on all of it, and "
        "on what besides, is for the provider to say. A summary of a model adds up those of all its datasets."
    )
    if facts.is_dataset:
        yield (
            "Documents and bytes are of the documents in the dataset, each counted once; tokens in training count each "
            "as often as it is used. Figures of stages are of the snapshots that it was built from as a whole: not "
            "each document that a stage kept is in the dataset."
        )
    if facts.state:
        yield f"This version does not count any more: it is {facts.state}."
    for name, state in facts.sources_since.items():
        yield f"It was built from {name} which does not count any more: it is {state}."
    if facts.erased:
        yield (
            f"{counted(facts.erased, 'row')} of these documents were erased since, by the log of erasures; the figures "
            "are those of the version as it was published."
        )


# --- Section 1 -------------------------------------------------------------------------------------------------------


def _general(facts: Facts) -> Part:
    about = facts.about
    answers = {
        "1.1. Provider, name and contact details": provider(", ".join(filter(None, (about.provider, about.contact)))),
        "1.1. Authorised representative": provider(about.representative),
        "1.2. Versioned model names": provider(" ".join(filter(None, (about.model, about.model_version)))),
        "1.2. Model dependencies": provider(about.model_dependencies),
        "1.2. Date of placement on the Union market": provider(about.placed_on_market),
        "1.3. Modality": Answer("text", evidence=facts.documents),
        "1.3. Training data size, range of the template": _size_range(facts),
        "1.3. Tokens in training": _training_tokens(facts),
        "1.3. Documents": facts.figure(facts.total.documents, "documents"),
        "1.3. Text, in UTF-8": facts.figure(facts.total.bytes, "bytes"),
        "1.3. Tokens, each document once": _tokens(facts),
        "1.3. Types of content": provider(about.content_types, _types(facts)),
        "1.3. Latest date of data acquisition": _latest(facts),
        "1.3. Is data collection going on": provider(about.collection_ongoing),
        "1.3. Other relevant characteristics": provider(about.other_characteristics),
    }
    return Part("general", "1. General information", answers, (_languages(facts),))


def _training_tokens(facts: Facts) -> Answer:
    if not facts.is_dataset:
        return MISSING
    return Answer(facts.version.tokens, "tokens, with repetitions", evidence=(facts.entry,))


def _tokens(facts: Facts) -> Answer:
    return facts.figure(facts.total.tokens, "tokens") if facts.total.tokens else MISSING


def _size_range(facts: Facts) -> Answer:
    """Return the range of the template that the tokens are in; none of a snapshot, which has no tokens yet."""
    tokens = facts.version.tokens if facts.is_dataset else 0
    if not tokens:
        return MISSING
    names = ("less than 1 billion tokens", "1 billion to 10 trillion tokens", "more than 10 trillion tokens")
    return Answer(names[(tokens >= BILLION) + (tokens > 10 * TRILLION)], evidence=(facts.entry,))


def _types(facts: Facts) -> Answer:
    """Return the types of documents that `enrich` found in the snapshots, most frequent first."""
    enrich = facts.stage(partial(adds, "document_type"))
    if enrich is None:
        return MISSING
    ranked = kept_by(enrich, "document_type").items()
    text = ", ".join(f"{name} {count:,}" for name, count in ranked)
    return Answer(f"documents by type, of the snapshots: {text}", evidence=enrich.evidence) if text else MISSING


def _latest(facts: Facts) -> Answer:
    last = max((period.last for period in facts.periods), default="")
    return Answer(month(last), evidence=facts.documents) if last else MISSING


def month(day: str) -> str:
    """Return a day as the template has it: `11/2026`."""
    return f"{day[5:7]}/{day[:4]}" if day else ""


def _languages(facts: Facts) -> Table:
    rows = [(name or "(not recognized)", each) for name, each in facts.counts.languages()]
    return Table(
        "languages",
        "1.3. Languages",
        ("language", *_amounts(facts), "share of bytes"),
        tuple((name, *_cells(facts, each), _share(each.bytes, facts.total.bytes)) for name, each in rows),
        facts.documents,
        "By the code of the language that most of a text is in, as recognized by the stage filter_language."
        if facts.stage(partial(adds, "language"))
        else "The recipe does not recognize languages.",
    )


def _amounts(facts: Facts) -> tuple[str, ...]:
    """Return the head of columns of amounts: there are no tokens before they are counted."""
    return ("documents", "bytes of text", *(("tokens",) if facts.total.tokens else ()))


def _cells(facts: Facts, amount: Amount) -> tuple[int, ...]:
    return (amount.documents, amount.bytes, *((amount.tokens,) if facts.total.tokens else ()))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


# --- Section 2 -------------------------------------------------------------------------------------------------------


def _list(facts: Facts, category: Category) -> Part:
    """Return one list of sources: those that belong to it, and of the crawled ones crawlers, periods and domains."""
    own = [origin for origin in facts.origins if origin.category == category]
    answers: dict[str, Answer] = {"Used": _used(facts, own, category)}
    if own:
        answers |= _described(facts, own, category)
    tables = [_sources(facts, own)] if own else []
    if category == "synthetic" and facts.generated:
        answers |= _generated_answers(facts)
        tables.append(generated_table(facts))
    if category in facts.domains:
        tables.append(_domain_table(facts, facts.domains[category].domains, category))
    return Part(category, LISTS[category], answers, tuple(tables), _assumed(own))


def _generated_answers(facts: Facts) -> dict[str, Answer]:
    """Return whether models wrote texts of the documents of sources, which, and how many."""
    models = dict.fromkeys(f"{each.model} ({each.license or 'no license given'})" for each in facts.generated)
    written = facts.written
    return {
        "Used": Answer(value=True, evidence=facts.documents),
        "Models that wrote it": Answer("; ".join(models), evidence=facts.documents),
        "Generated documents": facts.figure(written.documents, "documents"),
        "Generated text, in UTF-8": facts.figure(written.bytes, "bytes"),
        "Generated tokens": facts.figure(written.tokens, "tokens") if written.tokens else MISSING,
        "Of what it was generated": Answer(
            "of documents of the sources that the other lists have; each names its source document",
            evidence=facts.documents,
        ),
    }


def generated_table(facts: Facts) -> Table:
    """Return what each model wrote by each prompt."""
    return Table(
        "generated",
        "2.5. Generated documents by model",
        ("model", "license", "prompt", *_amounts(facts)),
        tuple(
            (each.model, each.license or "(not given)", each.prompt, *_cells(facts, each.amount))
            for each in facts.generated
        ),
        facts.documents,
        "A model is named with 16 digits of its digest; the license is the one that its card names.",
    )


def _assumed(own: Sequence[SourceOrigin]) -> str:
    if not any(origin.assumed for origin in own):
        return ""
    return (
        "The provider has not said to which list these sources belong: they are here by the kind of source that was "
        "pulled, or because they are web archives. Put them elsewhere by `sources` in the provider's file."
    )


def _said(facts: Facts, category: Category) -> str:
    about = facts.about
    said: Mapping[Category, str] = {
        "licensed": about.licensed_data,
        "private": about.private_data,
        "user": about.user_data,
        "synthetic": about.synthetic_data,
        "other": about.other_sources,
    }
    return said.get(category, "")


def _used(facts: Facts, own: Sequence[SourceOrigin], category: Category) -> Answer:
    """Return whether a list has sources: by what was refined, or by what the provider says of other data."""
    if own:
        return Answer(value=True, evidence=_of(facts, own))
    return provider(_said(facts, category), Answer("no source of this version", evidence=_of(facts, facts.origins)))


def _of(facts: Facts, own: Sequence[SourceOrigin]) -> tuple[str, ...]:
    """Return the ids of the manifests of what landed of sources."""
    return tuple(cite_stage(facts, origin.stated, LAND) for origin in own if LAND in origin.stated.manifests)


def _described(facts: Facts, own: Sequence[SourceOrigin], category: Category) -> dict[str, Answer]:
    answers = {"Modality": Answer("text", evidence=facts.documents)}
    described = [f"{origin.name}: {origin.about.description}" for origin in own if origin.about.description]
    answers["Description of the content"] = provider("; ".join(dict.fromkeys(described)))
    unread = [f"{origin.version.snapshot}: {origin.gone}" for origin in own if origin.gone]
    if unread:
        answers["Not known of the landing"] = Answer("; ".join(unread))
    if category == "crawled" or any(origin.archives for origin in own):
        answers |= _crawlers(facts, own)
    if said := _said(facts, category):
        answers["Additional comments"] = provider(said)
    return answers


def _crawlers(facts: Facts, own: Sequence[SourceOrigin]) -> dict[str, Answer]:
    """Return who crawled, as the archives say unless the provider does; purposes are for the provider to say."""
    archives = [origin for origin in own if origin.archives]
    crawlers = [crawler for origin in archives for crawler in origin.crawlers]
    robots = _once(f"the archives say of robots.txt: {crawler.robots}" for crawler in crawlers if crawler.robots)
    evidence = _of(facts, archives)
    first, last = _period(facts, own)
    period = f"{month(first)} to {month(last)}, by the documents that were kept"
    return {
        "Crawler names": provider(
            _once(origin.about.crawler for origin in own),
            Answer(_named(archives), evidence=evidence) if crawlers else MISSING,
        ),
        "Purposes of the crawlers": provider(_once(origin.about.crawler_purpose for origin in own)),
        "Behavior of the crawlers (robots.txt, captchas, paywalls)": provider(
            _once(origin.about.crawler_behavior for origin in own),
            Answer(robots, evidence=evidence) if robots else MISSING,
        ),
        "Period of data collection": Answer(period, evidence=facts.documents) if first else MISSING,
    }


def _named(archives: Sequence[SourceOrigin]) -> str:
    """Return the crawlers that archives name, and how many archives were read for it."""
    named = _once(_crawler_line(crawler) for origin in archives for crawler in origin.crawlers)
    read, total = sum(origin.read for origin in archives), sum(origin.archives for origin in archives)
    return f"{named} (read now from {read:,} of {counted(total, 'landed archive')}, whose SHA-256 the manifest has)"


def _once(texts: Iterable[str]) -> str:
    """Return different texts in a line, without empty ones."""
    return "; ".join(dict.fromkeys(filter(None, texts)))


def _crawler_line(crawler: Crawler) -> str:
    extra = ", ".join(filter(None, (crawler.operator, crawler.description)))
    return f"{crawler.name}{f' ({extra})' if extra else ''}"


def _period(facts: Facts, own: Sequence[SourceOrigin]) -> tuple[str, str]:
    names = {origin.version.snapshot for origin in own}
    periods = [period for period in facts.periods if period.snapshot in names]
    first = min((period.first for period in periods if period.first), default="")
    return first, max((period.last for period in periods), default="")


def _sources(facts: Facts, own: Sequence[SourceOrigin]) -> Table:
    periods = {period.snapshot: period for period in facts.periods}
    rows: list[tuple[Cell, ...]] = []
    for origin in own:
        period = periods.get(origin.version.snapshot)
        amount = period.amount if period else Amount(0, 0, 0)
        collected = f"{period.first} to {period.last}" if period and period.first else "not recorded"
        terms = origin.about.licence or origin.note.terms or "not given"
        link = f" {origin.about.link}" if origin.about.link else ""
        rows.append(
            (
                f"{origin.name}{link}",
                origin.kind,
                origin.version.snapshot,
                collected,
                _pulled(origin),
                terms,
                *_cells(facts, amount),
            )
        )
    head = (*SOURCE_HEAD, *_amounts(facts))
    return Table("sources", "Sources", head, tuple(rows), (*_of(facts, own), *facts.documents))


def _pulled(origin: SourceOrigin) -> str:
    note = origin.note
    files = "its files are those that were refined" if note.vouched else "it lists other files than were refined"
    return f"{note.pulled[:10]} ({files})" if note.pulled else "not by a pull"


def _domain_table(facts: Facts, domains: Domains, category: Category) -> Table:
    share = "5 %, at most 1,000," if facts.about.small_enterprise else "10 %"
    covered = _share(sum(amount.bytes for _, amount in domains.rows), domains.bytes)
    file, unnamed = DOMAINS.format(category=category), domains.unnamed
    more = f" The first {SHOWN:,} are below; {file} has all." if domains.listed > len(domains.rows) else ""
    without = f" {counted(unnamed.documents, 'document')} of {unnamed.bytes:,} bytes have no address."
    note = (
        f"The {share} of {counted(domains.total, 'registered domain')} with most bytes of text that was kept: "
        f"{domains.listed:,}. Those below have {covered:.1%} of the bytes of all.{more}"
        f"{without if unnamed.documents else ''} Bytes are of the text that was kept, not of the pages as they were "
        "crawled. A registered domain is one below a suffix of the ICANN part of the Public Suffix List: all sites of "
        "a host such as github.io are one."
    )
    rows: Rows = tuple((name, *_cells(facts, amount)) for name, amount in domains.rows)
    head = ("domain", *_amounts(facts))
    return Table("domains", "Most relevant domain names", head, rows, facts.documents, note)


# --- Section 3 -------------------------------------------------------------------------------------------------------


def _processing(facts: Facts) -> Iterator[Part]:
    about = facts.about
    rights = {
        "Signatory of the Code of Practice": provider(about.code_of_practice),
        "Measures of the provider": provider(about.rights_measures),
        **rights_answers(facts),
    }
    yield Part(
        "rights",
        "3.1. Respect of reservation of rights from text and data mining",
        rights,
        tuple(rights_tables(facts)),
    )
    illegal = {"Measures of the provider": provider(about.illegal_content_measures), **illegal_content(facts)}
    yield Part("illegal", "3.2. Removal of illegal content", illegal, tuple(filters_table(facts)))
    other = {"Other information": provider(about.other_processing), **personal_data_answers(facts)}
    tables = [*personal_data_table(facts), stages_table(facts), reasons_table(facts), gates_table(facts)]
    yield Part("processing", "3.3. Other information: personal data, all stages, and gates", other, tuple(tables))
