"""A standalone cluster of Spark as processes of this machine: a master, workers, and the executors that they start.

``python -m tests.spark.standalone_cluster FOLDER`` starts a master and two workers on free ports of the loopback,
prints the URL of the master, and stops them at the end of its input. Logs and the files of executors are in the folder.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from acep.spark.java import ensure_java

__all__ = ["ROOT", "SETTINGS", "Cluster", "environment_of", "executors_of", "kill_group", "make_home", "run_cluster"]

ROOT = Path(__file__).parents[2]
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""A JVM lives for seconds here: it compiles simply, and does not verify the classes of Spark."""
SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": JAVA,
    "spark.sql.shuffle.partitions": "2",
}
"""The settings of a driver whose executors have the size of a worker."""
MEMORY = "512M"
LOGS = """
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""
SECONDS = 60.0
"""A daemon that does not say in this time that it has begun is an error."""


def make_home(folder: Path) -> Path:
    """Make a ``SPARK_HOME`` whose programs are those of PySpark. Executors of ``local-cluster`` work in its folder
    ``work``, and a log is written at level info."""
    home = folder / "spark"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "log4j2.properties").write_text(LOGS)
    for name in ("bin", "jars"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return home


def environment_of(home: Path, host: str = "127.0.0.1") -> dict[str, str]:
    """Return the environment of a driver or a daemon: each listens on the loopback only."""
    java = ensure_java()
    return {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_HOSTNAME": host,
        "SPARK_SUBMIT_OPTS": JAVA,
        "SPARK_DAEMON_MEMORY": MEMORY,
        "SPARK_DAEMON_JAVA_OPTS": f"{JAVA} -Dspark.master.rest.enabled=false",
        **({} if java is None else {"JAVA_HOME": java}),
    }


def executors_of(*sessions: int) -> list[int]:
    """Return the processes that are executors, in sessions of processes that a driver or a worker leads."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in (path / "cmdline").read_bytes():
                parent, _, session = (path / "stat").read_text().rpartition(")")[2].split()[1:4]
                if int(session) in sessions:
                    parents[int(path.name)] = int(parent)
    # An executor that starts a process is there twice for a moment.
    return sorted(process for process, parent in parents.items() if parent not in parents)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a session, and those of its group, unless it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@dataclass
class Cluster:
    """A master and workers that run. Each process leads a group, to which the executors of a worker belong."""

    folder: Path
    home: Path
    master: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    url: str = ""

    def start_master(self) -> None:
        """Start the master, on a port that is free."""
        self.master, log = self._start("master", "127.0.0.1", "master.Master", "--port", "0")
        self.url = self._wait_for(r"Starting Spark master at (spark://\S+)", self.master, log)

    def add_worker(self) -> None:
        """Start a worker with one core, and wait until the master has it."""
        number = len(self.workers) + 1
        size = ("--cores", "1", "--memory", MEMORY, "--work-dir", str(self.folder / "work"))
        # Each has an address of its own, as a machine has: a task is not run twice on one.
        worker, log = self._start(f"worker-{number}", f"127.0.0.{number + 1}", "worker.Worker", *size, self.url)
        self.workers.append(worker)
        self._wait_for(r"(Successfully registered) with master", worker, log)

    def executors(self) -> list[int]:
        """Return the processes that are executors of its workers."""
        return executors_of(*(worker.pid for worker in self.workers if worker.poll() is None))

    def kill_worker(self) -> None:
        """Kill the worker that runs longest, and its executor with it, as if its machine had gone."""
        kill_group(next(worker for worker in self.workers if worker.poll() is None))

    def stop(self) -> None:
        """Kill all processes that run."""
        for process in (*self.workers, *([] if self.master is None else [self.master])):
            kill_group(process)

    def _start(self, name: str, host: str, daemon: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.folder / f"{name}.log"
        program = [str(self.home / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon}"]
        command = [*program, "--host", host, "--webui-port", "0", *arguments]
        with log.open("w") as file:
            process = subprocess.Popen(
                command, stdout=file, stderr=file, start_new_session=True, env=environment_of(self.home, host)
            )
        return process, log

    def _wait_for(self, pattern: str, process: subprocess.Popen[bytes], log: Path) -> str:
        began = time.monotonic()
        while (line := re.search(pattern, log.read_text())) is None:
            if process.poll() is not None or time.monotonic() - began > SECONDS:
                self.stop()
                raise RuntimeError(f"{log.name} does not say {pattern!r}:\n{log.read_text()[-3000:]}")
            time.sleep(0.05)
        return line[1]


@contextmanager
def run_cluster(folder: Path, n_workers: int = 2) -> Iterator[Cluster]:
    """Run a cluster whose files are in a folder."""
    cluster = Cluster(folder, make_home(folder))
    try:
        cluster.start_master()
        for _ in range(n_workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()


def main() -> None:
    """Run a cluster until the input ends."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with run_cluster(folder) as cluster:
        sys.stdout.write(f"{cluster.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
