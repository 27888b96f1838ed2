"""What the generator of streams with versions draws: each kind has its share, as in tests/test_census.py."""

from __future__ import annotations

from collections.abc import Iterator

from tests.spark.version_steps import Version, draw
from tests.test_census import hold

SHARES = {
    "1 buckets": 0.24, "3 buckets": 0.25, "op": 0.16, "several versions": 0.32, "speculation 0": 0.19,
    "speculation 2": 0.16, "speculation inf": 0.15, "window 2": 0.17, "window 4": 0.17, "window 8": 0.15,
    "one copy": 0.34, "two copies": 0.33, "from an earlier time": 0.16, "from a later time": 0.27,
    "from the next time": 0.32,
}  # fmt: skip


def test_versions_and_options() -> None:
    def kinds_of(seed: int) -> Iterator[str]:
        setting, steps = draw(seed)
        versions = [step for step in steps if isinstance(step, Version)]
        yield f"speculation {setting.options['speculation']}"
        yield f"{setting.options['buckets']} buckets"
        yield f"window {setting.within}"
        yield from ["op"] * ("op" in setting.options) + ["several versions"] * (len(versions) > 1)
        for version in versions:
            yield "one copy" if version.copies == 1 else "two copies"
            times = {"from an earlier time": version.before, "from a later time": version.after}
            yield next((kind for kind, ticks in times.items() if ticks is not None), "from the next time")

    hold(SHARES, kinds_of, 300)
