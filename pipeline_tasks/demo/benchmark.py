"""The demo's own evaluation set."""

BENCHMARK = (
    (
        (
            "A baker fills nine trays with fourteen rolls each and sells all but "
            "eleven of them before noon. How many rolls did the baker sell before noon?"
        ),
        "115",
    ),
    (
        (
            "A ferry crosses the bay in thirty five minutes and rests ten minutes at each pier. "
            "How many single crossings can it finish in six hours if it starts with a crossing?"
        ),
        "8",
    ),
    (
        (
            "Marta reads twelve pages on Monday and four more pages on each following day than "
            "on the day before. How many pages has she read by the end of Friday?"
        ),
        "100",
    ),
    (
        (
            "A rope of ninety six meters is cut into three pieces so that the second is "
            "twice the first and the third is three times the first. How long is the longest piece?"
        ),
        "48",
    ),
    (
        (
            "Seven gardeners plant seven hedges in seven days. How many hedges do fourteen "
            "gardeners plant in fourteen days if all of them work at the same pace?"
        ),
        "28",
    ),
    (
        (
            "A library lends two hundred books on Saturday and forty percent of them come "
            "back on Sunday. How many of the lent books are still out on Sunday night?"
        ),
        "120",
    ),
    (
        (
            "A train with eighteen cars carries sixty two passengers in each car, and one third "
            "of all passengers leave at the first stop. How many passengers stay on the train?"
        ),
        "744",
    ),
    (
        (
            "Olga saves three coins on the first day and doubles the number each day. On "
            "which day does she put aside more than one hundred coins for the first time?"
        ),
        "7",
    ),
)
"""Questions of the demo's own evaluation set; written for it, so that nobody else's benchmark is leaked."""
