# %% [markdown]
# # Spark, end to end
#
# After this notebook you can match a DataFrame, batch or streaming, write the matches to a sink that takes plain
# columns, stop and go on, and see what a stream does. You need `pip install '.[spark]'`; Java 17 is used if it is
# there.

# %%
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

import acep
import acep.spark
from acep.spark.metrics import progress_of

FILE = "../examples/data/cluster_jobs.parquet"
spark = acep.spark.get_session()  # the active session, or a local one
jobs = spark.read.parquet(FILE).where("arrival_seq < 20000")
jobs = jobs.select("ts", "type", "job_id", "logical_name", "arrival_seq")
jobs.printSchema()

# %% [markdown]
# ## A batch
#
# The query is the same as in one process. `seq=` names the order of events of one time, since Spark has no order of
# rows, and `id=` what the bindings show.

# %%
query = acep.parse("""
    PATTERN SEQ(KILL k, SUBMIT s, FINISH f)
    WHERE skip_till_next_match(k, s, f) { [logical_name] AND s.job_id != k.job_id AND f.job_id = s.job_id }
    WITHIN 30 min
    RETURN f.ts - s.ts AS lasted
""")
columns = {"seq": "arrival_seq", "id": "arrival_seq"}
matches = acep.spark.match(jobs, query, buckets=2, **columns)
matches.printSchema()

# %% [markdown]
# The matches are those of one process.

# %%
rows = sorted([row.bindings[name][0] for name in "ksf"] for row in matches.collect())
local = acep.match(acep.read_events(FILE).slice(0, 20_000), query, **columns)
same = rows == sorted([match.bindings[name][0] for name in "ksf"] for match in local)
print(len(rows), "matches; the same as in one process:", same)

# %% [markdown]
# ## Plain columns
#
# A CSV file or a table of a database takes no maps. With `flat=True` there is a column for each key, value and
# variable, and SQL can read them.

# %%
flat = acep.spark.match(jobs, query, flat=True, buckets=2, **columns)
flat.createOrReplaceTempView("restarts")
spark.sql("SELECT logical_name, count(*) AS restarts FROM restarts GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3").toPandas()

# %% [markdown]
# ## A stream
#
# Now the events come as files. A streaming DataFrame goes through the same function, with a `watermark`: how late
# events may be.

# %%
folder = Path(tempfile.mkdtemp())
(folder / "in").mkdir()


def arrive(first, last):
    """Put some of the events into the folder of the stream, as one more file."""
    events = pq.read_table(FILE, columns=jobs.columns).slice(first, last - first)
    pq.write_table(events, folder / f"{last}.tmp")
    (folder / f"{last}.tmp").rename(folder / "in" / f"{last}.parquet")  # so that it appears whole


def start():
    """Start the stream, or take it up again. It ends when there are no more files. Return the progress."""
    stream = spark.readStream.schema(jobs.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    matches = acep.spark.match(stream, query, watermark="1 minute", flat=True, buckets=2, **columns)
    writer = matches.writeStream.format("csv").option("header", True).option("path", str(folder / "out"))
    running = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    running.awaitTermination()
    return [progress_of(batch) for batch in running.recentProgress]


arrive(0, 12_000)
seen = start()
progress = seen[-1]
print(progress.events, "events,", progress.matches, "matches,", progress.late, "late,", progress.held, "held")

# %% [markdown]
# Events that are newer than the watermark are held: an earlier one may still come. The stream has ended and its state
# is in the checkpoint. When more files come, it goes on. A stream does not know by itself that it has ended: a row
# that says so (`punctuation`) has everything decided.

# %%
arrive(12_000, 20_000)
acep.spark.punctuation(jobs).write.mode("append").parquet(str(folder / "in"))
seen += start()
progress = seen[-1]
print(progress.events, "events,", progress.matches, "matches,", progress.late, "late,", progress.held, "held")

# %% [markdown]
# The rows of the sink are those of the batch.

# %%
written = spark.read.option("header", True).csv(str(folder / "out")).toPandas()
print("as many as in the batch:", len(written) == len(rows))
written[["logical_name", "k", "s", "f"]].astype({"f": int}).sort_values("f", ignore_index=True).head(3)

# %% [markdown]
# ## See what a stream does
#
# The progress of each micro-batch has totals over the whole stream, restarts included. Here are those that brought
# events.

# %%
totals = pd.DataFrame(
    [(batch.events, batch.matches, batch.held) for batch in seen], columns=["events", "matches", "held"]
)
totals.drop_duplicates("events").reset_index(drop=True)

# %% [markdown]
# It also says how long a micro-batch took and for what, and under a budget what was given up:
# `acep.plots.controller(seen)` draws it, and `acep replay --watch` shows it live.

# %% [markdown]
# ## Next
#
# * [On Spark](../docs/howto/spark.md): the three calls, and where to read on about late events, state and budgets.
# * [Recipes for Spark](../docs/howto/spark_recipes.md): Kafka, aggregations, sinks of your own.
