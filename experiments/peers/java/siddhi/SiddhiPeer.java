// Siddhi 5 on the same streams. Its `->` takes the next event that fits, and its windows contain their end.
// Arguments: file of events, pattern, window, limit in seconds, events to begin with.
import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.nio.file.Path;

public final class SiddhiPeer {
    private static final String STREAM =
            "@app:playback define stream S (id long, type int, key int, price int, volume int);";

    public static void main(String[] arguments) throws Exception {
        Event[] events = Event.read(Path.of(arguments[0]));
        String app = STREAM + "partition with (key of S) begin " + query(arguments[1], arguments[2]) + " end;";
        boolean placed = arguments[1].startsWith("w1");
        Timed.report(rows -> match(events, rows, app, placed),
                events.length, Integer.parseInt(arguments[4]), Double.parseDouble(arguments[3]));
        System.exit(0); // Siddhi leaves threads
    }

    private static String query(String name, String window) {
        switch (name) {
            case "w2-next":
                return "from every a=S[type == 0] -> b=S[type == 1] -> c=S[type == 2] within " + window
                        + " milliseconds select a.id as a, b.id as b, c.id as c insert into Out;";
            case "v-shape":
                return "from every p=S, s=S[price >= p.price],"
                        + " d=S[(d[last].price is null and price < s.price) or price < d[last].price]+,"
                        + " u=S[(u[last].price is null and price > d[last].price) or price > u[last].price]+,"
                        + " e=S[price <= u[last].price]"
                        + " select p.id as a, d[0].id as b, e.id as c insert into Out;";
            default:
                throw new IllegalArgumentException("no pattern " + name);
        }
    }

    private static long match(Event[] events, int rows, String app, boolean placed) throws InterruptedException {
        long[] matches = new long[1];
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime(app);
        runtime.addCallback("Out", new StreamCallback() {
            @Override
            public void receive(io.siddhi.core.event.Event[] found) {
                matches[0] += found.length;
            }
        });
        InputHandler input = runtime.getInputHandler("S");
        runtime.start();
        Timed.begin();
        for (int i = 0; i < rows; i++) {
            Event event = events[i];
            input.send(1 + (placed ? event.place : event.ts),
                    new Object[] {event.id, event.type, event.key, event.price, event.volume});
        }
        runtime.shutdown();
        manager.shutdown();
        return matches[0];
    }

    private SiddhiPeer() {}
}
