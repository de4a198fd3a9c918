"""The questions of this package."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "plan": Entry(
        "refinery_study.plan",
        "plan a training run: bytes to crawl, cores, storage, money, rate of the loader",
        "refine",
    ),
    "look breakdown": Entry(
        "refinery_study.breakdown",
        "documents kept and rejected by type, topic or any column, or by two",
        "look",
        shows=True,
        was="breakdown",
        is_question=True,
    ),
    "look map": Entry(
        "refinery_study.map.command",
        "draw a version's documents as points, near by their vectors, colored by any column",
        "look",
        shows=True,
        was="map",
    ),
    "read": Entry(
        "refinery_study.read",
        "read documents that were kept and rejected, judge them, and see what that says",
        "look",
        shows=True,
    ),
    "look intruder": Entry(
        "refinery_study.intruder",
        "find the foreign one of five documents: whether groups have much in common",
        "look",
        shows=True,
        was="intruder",
    ),
    "sql": Entry(
        "refinery_study.sql",
        "query by SQL the verified rows of a version: kept, rejected, stages, lineage",
        "look",
        shows=True,
    ),
    "look contamination": Entry(
        "refinery_study.contamination",
        "list evaluation items in snapshots, or look for a new benchmark",
        "look",
        shows=True,
        was="contamination",
    ),
    "look lsh-curve": Entry(
        "refinery_study.lsh_curve",
        "compute the probability that bands and rows make a pair a candidate",
        "look",
        was="lsh-curve",
    ),
}
