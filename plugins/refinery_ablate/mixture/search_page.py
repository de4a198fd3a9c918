"""Writes a mixture search as one HTML page that opens offline: the outcome first, and what cannot be said last."""

from collections.abc import Iterator
from pathlib import Path

from pipeline_tasks.report.html import Html, count, page, section, shown, table, tag
from refinery_ablate.held_out import HeldOut
from refinery_ablate.held_out_sets import LEAST_DOCUMENTS
from refinery_ablate.mixture.found import Found, lines_of_outcome, recipe_text, warnings
from refinery_ablate.mixture.search_plan import FOUND, PRIOR, SAMPLED, WITHOUT
from refinery_ablate.mixture.search_plots import fit_plot, weights_plot
from refinery_ablate.plots import forest_plot
from refinery_ablate.report import PAGE, figure, small_groups
from refinery_ablate.sizes import SMOKE, size_of
from refinery_ablate.statistics import BETTER
from refinery_ablate.verdict import hours_of

__all__ = ["PAGE", "write_page"]

KINDS = {
    PRIOR: "the prior, with other seeds",
    WITHOUT: "the prior without one group",
    SAMPLED: "sampled mixtures",
    FOUND: "the found mixture, with fresh seeds",
}


def write_page(folder: Path, found: Found, held_out: HeldOut) -> Path:
    """Write the page of a search that is judged; return its path."""
    name = shown(found.search.asked.dataset.rstrip("/").rpartition("/")[2], 80)
    title = f"Mixture of {name} by {found.search.asked.by}"
    forest = [figure(forest_plot(found.differences, found.groups, ("the found one", "the prior")))]
    sections = [
        _opening(title, found),
        figure(weights_plot(found)),
        *(forest if found.differences else []),
        _check(found),
        figure(fit_plot(found)),
        _proxies(found),
        _groups(found),
        section("For a recipe", "The part of a recipe that says how a build mixes.", tag("pre", recipe_text(found))),
        section("What cannot be said", "", tag("ul", *(tag("li", line) for line in unsaid(found, held_out)))),
    ]
    path = folder / PAGE
    path.write_bytes(page(title, *sections))
    return path


def _opening(title: str, found: Found) -> Html:
    search = found.search
    first, *rest = (f"{line[0].upper()}{line[1:]}" for line in map(str.strip, lines_of_outcome(found)))
    weak = (f"{line[0].upper()}{line[1:]}." for line in warnings(found))
    tiles = (
        (f"{len(search.proxies)}", "proxies"),
        (search.size, "size of the models"),
        (count(search.sequences * search.length), "tokens of each run"),
        (f"{found.check.correlation:.2f}", "rank correlation, left out"),
        (f"{found.check.regret:.4f}", "regret at 1, bits per byte"),
        (f"{found.check.optimism:+.4f}", "optimism, bits per byte"),
    )
    return tag(
        "header",
        tag("h1", title),
        tag("p", tag("b", first, css="pass" if found.outcome == BETTER else "warn", style="font-size:1.15rem")),
        *(tag("p", line) for line in (*rest, *weak)),
        tag("div", *(tag("div", tag("b", value), tag("span", said), css="tile") for value, said in tiles), css="tiles"),
    )


def _check(found: Found) -> Html:
    check, noise = found.check, found.noise
    rows = [
        ("rank correlation (Spearman)", f"{check.correlation:.3f}", "1 is the order of the measured mixtures"),
        (
            "regret at 1",
            f"{check.regret:.4f}",
            "bits per byte that the mixture expected to be best costs above the best",
        ),
        ("optimism", f"{check.optimism:+.4f}", "bits per byte that the lowest tenth costs above what was expected"),
        (
            "noise of seeds",
            f"{noise.deviation:.4f}",
            "bits per byte between runs of the prior: regret of this size is none",
        ),
    ]
    lead = (
        "Each mixture was predicted by fits that did not have it. A fit that is right on the mixtures it has seen says "
        "nothing, and so that is not shown."
    )
    return section("How well the fit predicts", lead, table(("", "", "meaning"), rows, numeric=(1,)))


def _proxies(found: Found) -> Html:
    search = found.search
    rows = []
    for number in sorted({proxy.round for proxy in search.proxies}):
        for kind, said in KINDS.items():
            proxies = [proxy for proxy in search.of_kind(kind) if proxy.round == number]
            if proxies:
                rates = ", ".join(f"{rate:g}" for rate in sorted({proxy.rate for proxy in proxies}, reverse=True))
                rows.append((f"{number}", said, f"{len(proxies)}", rates))
    lead = f"All proxies took {hours_of(found.seconds, 0)}. The seed of each is its number."
    return section("Proxies", lead, table(("round", "mixture", "proxies", "learning rate"), rows, numeric=(2, 3)))


def _groups(found: Found) -> Html:
    asked = found.search.asked
    rows = [
        (
            shown(group.name, 60) or "(none)",
            count(group.tokens),
            count(group.pooled * found.search.length),
            f"{weight.prior * asked.budget / group.tokens:.2f}",
            f"{weight.found * asked.budget / group.tokens:.2f}",
            shown(", ".join(group.members), 300) if len(group.members) > 1 else "",
        )
        for group, weight in zip(found.search.groups, found.weights, strict=True)
    ]
    lead = (
        f"Weights are for a training of {asked.budget:,} tokens, in which no group is used more than "
        f"{asked.max_epochs:g} times. The pool of a group has the same share of its tokens as a proxy has of that "
        "training, so that proxies repeat a group as often as the training will."
    )
    head = ("group", "tokens", "tokens for proxies", "uses in the prior", "uses in the found one", "joined of")
    return section("Groups", lead, table(head, rows, numeric=range(1, 5)))


def unsaid(found: Found, held_out: HeldOut) -> Iterator[str]:
    """Yield what does not follow from a search."""
    search, size = found.search, size_of(found.search.size)
    if search.size == SMOKE:
        yield "Models of the size smoke show that a search works. Their weights say nothing of models that people use."
    else:
        yield (
            f"Models have {size.parameters / 1e6:,.0f} million parameters without those of the vocabulary. The best "
            "mixture for larger ones, or for more tokens, may be another one."
        )
    yield (
        "The mixture is found for one half of the held-out documents, and judged by the other: a group that none of "
        "them speaks for gets little."
    )
    yield (
        "The fit lets a group harm by its place alone, and has no terms of two groups together. Intervals of weights "
        "are of this fit; they do not say how wrong its form is."
    )
    yield "Noise was measured at the prior and at the found mixture. It may be larger at mixtures of few groups."
    small = [*small_groups(held_out.domains, "domain", LEAST_DOCUMENTS)]
    small += small_groups(held_out.languages, "language", LEAST_DOCUMENTS)
    if small:
        yield f"Groups with fewer than {LEAST_DOCUMENTS} documents are not compared by themselves: {', '.join(small)}."
