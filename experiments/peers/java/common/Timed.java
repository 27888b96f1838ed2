// Runs a peer on longer and longer prefixes of a stream until the next run would take too much processor time, then
// times it.
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Locale;

public final class Timed {
    private static final int GROWTH = 4;
    private static final int REPEATS = 3;
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** Matches the first events; the matches. A peer that starts slowly calls begin() when the first event comes. */
    public interface Peer {
        long match(int rows) throws Exception;
    }

    private static volatile long wall;
    private static volatile long cpu;

    public static void begin() {
        wall = System.nanoTime();
        cpu = PROCESS.getProcessCpuTime();
    }

    /** Prints one line of JSON: rows, matches, seconds, cpu (of the best run), runs. */
    public static void report(Peer peer, int of, int first, double limit) throws Exception {
        int rows = Math.min(of, first);
        double[] best = time(peer, rows);
        while (rows < of) {
            int more = (int) Math.min((long) of, (long) rows * GROWTH);
            if (best[1] * more / rows > limit) {
                best = time(peer, rows); // the compiler may have been at work
                if (best[1] * more / rows > limit) {
                    break;
                }
            }
            rows = more;
            best = time(peer, rows);
        }
        double spent = best[1];
        double worst = best[1];
        int runs = 1;
        while (runs < REPEATS && spent + best[1] < limit) {
            double[] again = time(peer, rows);
            spent += again[1];
            worst = Math.max(worst, again[1]);
            best[0] = Math.min(best[0], again[0]);
            best[1] = Math.min(best[1], again[1]);
            runs++;
        }
        System.out.printf(Locale.ROOT,
                "{\"rows\": %d, \"matches\": %d, \"seconds\": %.6f, \"cpu\": %.6f, \"runs\": %d, \"spread\": %.4f}%n",
                rows, (long) best[2], best[0], best[1], runs, worst / best[1] - 1);
    }

    private static double[] time(Peer peer, int rows) throws Exception {
        System.gc();
        begin();
        long matches = peer.match(rows);
        return new double[] {(System.nanoTime() - wall) / 1e9, (PROCESS.getProcessCpuTime() - cpu) / 1e9, matches};
    }

    private Timed() {}
}
