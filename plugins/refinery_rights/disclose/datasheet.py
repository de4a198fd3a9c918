"""Answers the questions of a datasheet (Gebru et al., arXiv 1803.09010, v8) that the root can answer.

A provider answers others in its file, under the key of the question. What nobody answers is said to be not given.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pipeline_tasks.cards import adds
from pipeline_tasks.counted import counted
from refinery_rights.disclose.facts import Facts, StageTotal
from refinery_rights.disclose.measures import personal_data_answers, rights_answers, stages_table
from refinery_rights.disclose.page import MISSING, Answer, Page, Part, provider
from refinery_rights.statements.statement import writers

LEAD = (
    "Questions of Datasheets for Datasets (Gebru et al., arXiv 1803.09010). Answers with a mark such as [E1] follow "
    "from the manifests and logs; the last section has the SHA-256 of what they were computed from."
)

QUESTIONS: Mapping[str, Mapping[str, str]] = {
    "Motivation": {
        "purpose": "For what purpose was the dataset created?",
        "creator": "Who created the dataset, and on behalf of which entity?",
        "funding": "Who funded the creation of the dataset?",
    },
    "Composition": {
        "instances": "What do the instances represent?",
        "count": "How many instances are there in total?",
        "sample": "Does the dataset contain all possible instances or a sample?",
        "instance_data": "What data does each instance consist of?",
        "labels": "Is there a label or target associated with each instance?",
        "missing": "Is any information missing from individual instances?",
        "relationships": "Are relationships between instances made explicit?",
        "splits": "Are there recommended data splits?",
        "errors": "Are there errors, sources of noise, or redundancies?",
        "self_contained": "Is the dataset self-contained, or does it rely on external resources?",
        "confidential": "Does it contain data that might be considered confidential?",
        "offensive": "Does it contain data that might be offensive, insulting or threatening?",
        "subpopulations": "Does it identify any subpopulations?",
        "identifiable": "Is it possible to identify individuals?",
        "sensitive": "Does it contain data that might be considered sensitive?",
    },
    "Collection process": {
        "acquired": "How was the data acquired?",
        "mechanisms": "What mechanisms or procedures were used to collect it?",
        "sampling": "If it is a sample, what was the sampling strategy?",
        "who": "Who was involved in the collection, and how were they compensated?",
        "timeframe": "Over what timeframe was the data collected?",
        "ethical_review": "Were any ethical review processes conducted?",
        "notified": "Were individuals notified about the collection?",
        "consent": "Did individuals consent to the collection and use?",
        "revoke": "Is there a mechanism to revoke consent?",
        "impact": "Has the impact of the dataset on data subjects been analyzed?",
    },
    "Preprocessing, cleaning, labeling": {
        "preprocessing": "Was any preprocessing, cleaning or labeling done?",
        "raw": "Was the raw data saved in addition?",
        "software": "Is the software that was used available?",
    },
    "Uses": {
        "used": "Has the dataset been used for any tasks already?",
        "repository": "Is there a repository that links to papers or systems that use it?",
        "other_tasks": "What other tasks could it be used for?",
        "risks": "Is there anything about its composition or making that might impact future uses?",
        "not_for": "Are there tasks for which it should not be used?",
    },
    "Distribution": {
        "distributed": "Will it be distributed to third parties?",
        "how": "How will it be distributed?",
        "when": "When will it be distributed?",
        "licence": "Under which licence or terms will it be distributed?",
        "restrictions": "Have third parties imposed restrictions on the data?",
        "export_controls": "Do export controls or other regulations apply?",
    },
    "Maintenance": {
        "maintainer": "Who supports, hosts and maintains it?",
        "contact": "How can the maintainer be contacted?",
        "erratum": "Is there an erratum?",
        "updated": "Will it be updated?",
        "retention": "Are there limits on the retention of data about people?",
        "older": "Will older versions be supported?",
        "contribute": "Is there a mechanism for others to contribute?",
    },
}

KEYS = frozenset(key for part in QUESTIONS.values() for key in part)


def datasheet(facts: Facts) -> Page:
    """Return the datasheet of a version."""
    known = _known(facts)
    parts = [
        Part(
            title.lower().replace(",", "").replace(" ", "_"),
            title,
            {
                question: provider(facts.about.datasheet.get(key, ""), known.get(key, MISSING))
                for key, question in questions.items()
            },
            (stages_table(facts),) if "preprocessing" in questions else (),
        )
        for title, questions in QUESTIONS.items()
    ]
    return Page(f"Datasheet: {facts.name}", (LEAD,), tuple(parts), facts.evidence)


def _known(facts: Facts) -> dict[str, Answer]:
    """Return the answers that the root gives, by the key of the question."""
    about, version = facts.about, facts.version
    taken = rights_answers(facts)["Takedowns on request"]
    personal = personal_data_answers(facts)["Personal data"]
    rejecting = [stage for stage in facts.stages if stage.rejected]
    first = min((period.first for period in facts.periods if period.first), default="")
    last = max((period.last for period in facts.periods), default="")
    landed = [origin.line for origin in facts.origins]
    decontaminated = facts.stage(partial(adds, "contaminated_by"))
    entry = (facts.entry,)
    return {
        "creator": provider(about.provider),
        "instances": Answer(_instances(facts), evidence=facts.documents),
        "count": Answer(_count(facts), evidence=facts.sized),
        "sample": Answer(
            f"a selection: {counted(len(rejecting), 'stage')} rejected rows, by reasons that the summary has",
            evidence=facts.sized,
        ),
        "labels": Answer("no", evidence=facts.documents),
        "missing": Answer(
            "bytes of the pages that extraction left out, and what stages cut or replaced; the rejected documents are "
            "kept apart, each with its reason",
            evidence=facts.sized,
        ),
        "relationships": Answer(
            "the snapshot, file and record that each document came from"
            + ("; of a generated document its source" if facts.generated else ""),
            evidence=facts.documents,
        ),
        "errors": Answer(_redundancies(facts), evidence=facts.sized),
        "self_contained": Answer("it has the texts or tokens themselves", evidence=facts.documents),
        "identifiable": replace(personal, value=f"it is not excluded; {personal.value}"),
        "acquired": Answer("; ".join(landed), evidence=(facts.entry,)) if landed else MISSING,
        "timeframe": Answer(f"{first} to {last}", evidence=facts.documents) if first else MISSING,
        "revoke": replace(taken, value=f"what is asked for is taken down, and erased, by logs; {taken.value}"),
        "preprocessing": Answer("yes, by the stages below, in their order", evidence=facts.sized),
        "raw": Answer("landed files stay where they landed, outside of the root; manifests name them by SHA-256"),
        "software": Answer(
            f"Refinery; shards were written by {', '.join(writers(facts.stated))}", evidence=facts.sized
        ),
        "risks": Answer(_contamination(decontaminated), evidence=decontaminated.evidence)
        if decontaminated
        else Answer("it was not compared with evaluation sets: the recipe has no decontaminate", evidence=facts.sized),
        "licence": provider(about.licence),
        "restrictions": Answer(terms) if (terms := _terms(facts)) else MISSING,
        "maintainer": provider(about.provider),
        "contact": provider(about.contact),
        "updated": Answer(f"it is version {version.number}; each version is an entry of a log", evidence=entry),
        "older": Answer("older versions stay in the log, and their files until they are erased", evidence=entry),
    }


def _instances(facts: Facts) -> str:
    made = ", and texts that models generated of them" if facts.generated else ""
    if facts.is_dataset:
        return f"sequences of tokens, packed from documents of the web{made}"
    return f"documents: texts of web pages{made}"


def _count(facts: Facts) -> str:
    version, total = facts.version, facts.total
    packed = f"; {version.sequences:,} sequences of {version.tokens:,} tokens in all" if facts.is_dataset else ""
    return f"{total.documents:,} documents with {total.bytes:,} bytes of text{packed}{_generated(facts)}"


def _generated(facts: Facts) -> str:
    """Return how many documents models wrote, and which models; "" if none did."""
    if not facts.generated:
        return ""
    written, models = facts.written, dict.fromkeys(each.model for each in facts.generated)
    tokens = f" and {written.tokens:,} tokens" if written.tokens else ""
    by = ", ".join(models)
    return f"; {written.documents:,} of the documents, with {written.bytes:,} bytes{tokens}, were generated by {by}"


def _redundancies(facts: Facts) -> str:
    rejections = [
        f"{stage.stage} rejected {sum(stage.rejected.values()):,} of {stage.rows_in:,}"
        for stage in facts.stages
        if stage.stage.startswith("dedup_")
    ]
    repeated = facts.uses.documents - facts.total.documents
    repeats = f"; {repeated:,} repetitions of documents were put in on purpose" if repeated else ""
    return ("; ".join(rejections) or "duplicates were not looked for") + repeats


def _contamination(stage: StageTotal) -> str:
    rejected = sum(stage.rejected.values())
    idle = f"; {'; '.join(stage.idle)}" if stage.idle else ""
    return f"decontaminate rejected {rejected:,} of {counted(stage.rows_in, 'document')}{idle}"


def _terms(facts: Facts) -> str:
    return "; ".join(dict.fromkeys(origin.note.terms for origin in facts.origins if origin.note.terms))
