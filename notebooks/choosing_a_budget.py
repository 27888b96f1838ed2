# %% [markdown]
# # Choosing a budget from the curve
#
# After this notebook you can say how much work a query needs to find enough, and check that it does. Under a budget
# of work, a query finds a part of what there is. How much, is best asked of a stream that is known: run the query
# over it exactly, then under several budgets, and look at the share that each of them finds, the *recall*. (`acep
# tune` does this for you: [tuning a query](tuning_a_query.ipynb).)

# %%
from jobs import jobs
from shown import given_up

import acep

QUERY = acep.parse(
    """
    PATTERN SEQ(SUBMIT a, KILL b, SUBMIT c, KILL d, FINISH e)
    WHERE skip_till_any_match(a, b, c, d, e) {
        [user] AND b.job_id = a.job_id AND c.job_id > b.job_id
        AND d.job_id = c.job_id AND e.job_id > d.job_id }
    WITHIN 1 hour
    """
)

# %% [markdown]
# Two jobs of a user are killed, one after the other, and a third one finishes. The stream is cut into three: *past*, to
# learn from; *measured*, for the curve; and *new*, where the budget that was chosen is tried.
#
# A run without a budget uses that all events of a table are there, and leaves out what none of them can complete. A run
# under a budget does not, so its work is another one. The exact answer needs as much of a budget as it takes under one
# that suffices for everything.

# %%
stream = jobs(66_000)
third = stream.num_rows // 3
past, measured, new = (stream.slice(n * third, third) for n in range(3))


def run(events, **options):
    """Return the match points (a user, and the time at which a match was complete), and the report."""
    matches = acep.match(events, QUERY, **options)
    return {(match.key["user"], match.end) for match in matches}, matches.report


AMPLE = acep.Budget(work=1_000)
exact, report = run(measured, budget=AMPLE)
touches = report.work / report.events
print(f"{len(exact):,} match points, {touches:.1f} touches an event")
assert report.exact
assert exact

# %% [markdown]
# ## The curve
#
# Each policy chooses in its own way what is kept. `random` keeps partial matches by chance, `newest-per-state` those
# that began last; `history` learns while it runs, and *learned* is `history` with what `acep.learn` found in the
# past.

# %%
learned = acep.learn(past, QUERY)
POLICIES = {
    "random": {"policy": "random"},
    "newest-per-state": {"policy": "newest-per-state"},
    "history": {"policy": "history"},
    "learned": {"policy": "history", "history": learned},
}
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)

recall = {}
for name, options in POLICIES.items():
    for share in SHARES:
        budget = acep.Budget(work=share * touches)
        points, report = run(measured, budget=budget, **options)
        assert points <= exact  # nothing is invented
        assert report.work <= budget.work * report.events  # the budget is never exceeded
        recall[name, share] = len(points) / len(exact)

print("work".ljust(18), *(f"{share:>6.0%}" for share in SHARES))
for name in POLICIES:
    print(name.ljust(18), *(f"{recall[name, share]:6.2f}" for share in SHARES))

# %%
curves = {p: [(acep.Budget(work=s * touches), recall[p, s]) for s in SHARES] for p in POLICIES}
acep.plots.recall_curve(curves, work=touches)

# %% [markdown]
# More work finds more. With what was learned from the past, a tenth of the work finds more than by chance. Deciding
# is charged as work too, so that the whole work of the exact run need not suffice for all that it finds.

# %%
assert recall["learned", 0.05] < recall["learned", 0.25] < recall["learned", 1.0]
assert recall["learned", 0.1] > recall["random", 0.1]

# %% [markdown]
# ## The choice
#
# Say that seven of ten match points are enough: the least budget of the curve that finds as many is taken.

# %%
ENOUGH = 0.7
share = min(share for share in SHARES if recall["learned", share] >= ENOUGH)
chosen = acep.Budget(work=share * touches)
print(f"{share:.0%} of the work: {chosen.work:.1f} touches an event")
assert share < 1

# %% [markdown]
# On the new part nobody knows the exact answer. The report estimates the recall from a small sample of the stream,
# with an interval of 90 %, which is wide where a stream is as short as this one. If it falls below what is enough, it
# is time for a new curve.

# %%
points, report = run(new, budget=chosen, history=learned)
given_up(report)

# %% [markdown]
# This once the exact answer can be had, to compare.

# %%
truth, _ = run(new)
low, high = report.interval
print(f"recall on the new part: {len(points) / len(truth):.2f}; estimated interval: {low:.2f} to {high:.2f}")
assert points <= truth
assert report.work <= chosen.work * report.events
