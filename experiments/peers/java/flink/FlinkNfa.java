// Flink CEP's NFA alone: one state and one shared buffer a key, in plain maps, without a DataStream around it.
// Arguments: file of events, pattern, window, limit in seconds, events to begin with, file for the bindings of those.
import java.io.PrintWriter;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.state.KeyedStateStore;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.cep.configuration.SharedBufferCacheConfig;
import org.apache.flink.cep.nfa.NFA;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor;

public final class FlinkNfa {
    private record Keyed(SharedBuffer<Event> buffer, NFAState state) {}

    public static void main(String[] arguments) throws Exception {
        Event[] events = Event.read(Path.of(arguments[0]));
        String name = arguments[1];
        long window = Long.parseLong(arguments[2]);
        int first = Integer.parseInt(arguments[4]);
        boolean keyed = !name.startsWith("w3");
        try (PrintWriter out = new PrintWriter(arguments[5], "UTF-8")) {
            match(events, first, name, window, keyed, out);
        }
        Timed.report(rows -> match(events, rows, name, window, keyed, null),
                events.length, first, Double.parseDouble(arguments[3]));
    }

    private static long match(Event[] events, int rows, String name, long window, boolean keyed, PrintWriter out)
            throws Exception {
        boolean placed = name.startsWith("w1");
        NFA<Event> nfa = NFACompiler.compileFactory(Patterns.of(name, window, placed), false).createNFA();
        TypeSerializer<Event> serializer = TypeInformation.of(Event.class).createSerializer(new SerializerConfigImpl());
        SharedBufferCacheConfig cache = new SharedBufferCacheConfig(8 * 1024, 8 * 1024, Duration.ofDays(1));
        AfterMatchSkipStrategy skip = AfterMatchSkipStrategy.noSkip();
        Map<Integer, Keyed> keys = new HashMap<>();
        long matches = 0;
        for (int i = 0; i < Math.min(rows, events.length); i++) {
            Event event = events[i];
            Keyed own = keys.get(keyed ? event.key : 0);
            if (own == null) {
                own = new Keyed(new SharedBuffer<>(store(), serializer, cache), nfa.createInitialNFAState());
                own.buffer().releaseCacheStatisticsTimer(); // a thread for each
                keys.put(keyed ? event.key : 0, own);
            }
            long time = placed ? event.place : event.ts;
            try (SharedBufferAccessor<Event> accessor = own.buffer().getAccessor()) {
                nfa.advanceTime(accessor, own.state(), time, skip);
                Collection<Map<String, List<Event>>> found =
                        nfa.process(accessor, own.state(), event, time, skip, () -> time);
                for (Map<String, List<Event>> match : found) {
                    Map<String, List<Event>> selected = Patterns.select(name, match);
                    matches += selected.isEmpty() ? 0 : 1;
                    if (out != null) {
                        out.println(new TreeMap<>(selected).entrySet().stream()
                                .map(e -> e.getKey() + "=" + e.getValue().stream().map(v -> Long.toString(v.id))
                                        .collect(Collectors.joining(",")))
                                .collect(Collectors.joining(" ")));
                    }
                }
            }
        }
        return matches;
    }

    /** State in maps, as Flink's own tests of its NFA keep it. */
    private static KeyedStateStore store() {
        return (KeyedStateStore) Proxy.newProxyInstance(
                FlinkNfa.class.getClassLoader(), new Class<?>[] {KeyedStateStore.class}, (proxy, method, given) -> {
                    switch (method.getName()) {
                        case "getState": return new Single<>();
                        case "getMapState": return new Held<>();
                        default: throw new UnsupportedOperationException(method.getName());
                    }
                });
    }

    private static final class Single<T> implements ValueState<T> {
        private T value;

        @Override public T value() { return value; }
        @Override public void update(T given) { value = given; }
        @Override public void clear() { value = null; }
    }

    private static final class Held<K, V> implements MapState<K, V> {
        private final Map<K, V> values = new HashMap<>();

        @Override public V get(K key) { return values.get(key); }
        @Override public void put(K key, V value) { values.put(key, value); }
        @Override public void putAll(Map<K, V> given) { values.putAll(given); }
        @Override public void remove(K key) { values.remove(key); }
        @Override public boolean contains(K key) { return values.containsKey(key); }
        @Override public Iterable<Map.Entry<K, V>> entries() { return values.entrySet(); }
        @Override public Iterable<K> keys() { return values.keySet(); }
        @Override public Iterable<V> values() { return values.values(); }
        @Override public Iterator<Map.Entry<K, V>> iterator() { return values.entrySet().iterator(); }
        @Override public boolean isEmpty() { return values.isEmpty(); }
        @Override public void clear() { values.clear(); }
    }

    private FlinkNfa() {}
}
