// The workloads as Flink CEP patterns. Names are those of experiments/workloads.py; "-own" marks Flink's own meaning.
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

public final class Patterns {
    /**
     * Flink's window leaves out its end: `window` is the first difference of times that is too much. W1 has a window of
     * positions. Where each key has its own time (`placed`) that time is the position; in a stream, time is common to all
     * keys, so there the last event looks at its position, and `slack` ticks are more than a window ever takes.
     */
    public static Pattern<Event, ?> of(String name, long window, boolean placed) {
        long slack = placed ? window : 3 * window;
        switch (name) {
            case "w1-contiguity":
                return within(Pattern.<Event>begin("a1").where(simple(e -> e.price % 500 == 0))
                        .next("a").where(rising()).oneOrMore().consecutive().optional()
                        .next("b").where(ending(window, placed)), slack);
            case "w1-contiguity-plain":
                return within(Pattern.<Event>begin("a1").where(series()).oneOrMore().consecutive()
                        .next("b").where(ending(window, placed)), slack);
            case "w1-next":
                // Skip till next match never loses a run here, so b may be any later event of the window, and what a
                // binds are the running maxima of what lies between: bound as x, and chosen in select().
                return within(Pattern.<Event>begin("a1").where(simple(e -> e.price % 500 == 0))
                        .next("x").oneOrMore().consecutive().optional()
                        .next("b").where(ending(window, placed)), slack);
            case "w1-next-own":
                return within(Pattern.<Event>begin("a1").where(simple(e -> e.price % 500 == 0))
                        .followedBy("a").where(rising()).oneOrMore().optional()
                        .followedBy("b").where(ending(window, placed)), slack);
            case "w2-next":
                return within(Pattern.<Event>begin("a").where(type(0))
                        .followedBy("b").where(type(1)).followedBy("c").where(type(2)), window);
            case "w2-any":
                return within(Pattern.<Event>begin("a").where(type(0))
                        .followedByAny("b").where(type(1)).followedByAny("c").where(type(2)), window);
            case "w3-any":
                return within(Pattern.<Event>begin("a").where(type(0)).followedByAny("b").where(type(1))
                        .followedByAny("c").where(type(2)).followedByAny("d").where(type(3)), window);
            case "v-shape":
                return Pattern.<Event>begin("p")
                        .next("s").where(against("p", null, (e, before) -> e.price >= before.price))
                        .next("d").where(against("d", "s", (e, before) -> e.price < before.price))
                        .oneOrMore().consecutive()
                        .next("u").where(against("u", "d", (e, before) -> e.price > before.price))
                        .oneOrMore().consecutive()
                        .next("e").where(against("u", null, (e, before) -> e.price <= before.price));
            default:
                throw new IllegalArgumentException("no pattern " + name);
        }
    }

    /** What a match binds, under acep's names. */
    public static Map<String, List<Event>> select(String name, Map<String, List<Event>> match) {
        if (!name.startsWith("w1")) {
            return match;
        }
        List<Event> series = new ArrayList<>(match.get("a1"));
        if (name.equals("w1-next")) {
            Event last = series.get(0);
            for (Event event : match.getOrDefault("x", List.of())) {
                if (event.price > last.price) {
                    series.add(event);
                    last = event;
                }
            }
        } else {
            series.addAll(match.getOrDefault("a", List.of()));
        }
        Map<String, List<Event>> selected = new LinkedHashMap<>();
        selected.put("a", series);
        selected.put("b", match.get("b"));
        return selected;
    }

    interface Test extends java.io.Serializable {
        boolean holds(Event event);
    }

    interface Pair extends java.io.Serializable {
        boolean holds(Event event, Event before);
    }

    private static <F extends Event> Pattern<Event, F> within(Pattern<Event, F> pattern, long window) {
        return pattern.within(Duration.ofMillis(window));
    }

    private static SimpleCondition<Event> simple(Test test) {
        return new SimpleCondition<Event>() {
            @Override
            public boolean filter(Event event) {
                return test.holds(event);
            }
        };
    }

    private static SimpleCondition<Event> type(int type) {
        return simple(e -> e.type == type);
    }

    private static IterativeCondition<Event> rising() {
        return against("a", "a1", (e, before) -> e.price > before.price);
    }

    /** As one writes it down first: one variable, whose condition knows its first event from the others. */
    private static IterativeCondition<Event> series() {
        return new IterativeCondition<Event>() {
            @Override
            public boolean filter(Event event, Context<Event> context) throws Exception {
                Event before = last(context, "a1");
                return before == null ? event.price % 500 == 0 : event.price > before.price;
            }
        };
    }

    private static IterativeCondition<Event> ending(long window, boolean placed) {
        if (placed) {
            return simple(e -> e.volume < 150);
        }
        return new IterativeCondition<Event>() {
            @Override
            public boolean filter(Event event, Context<Event> context) throws Exception {
                return event.volume < 150
                        && event.place - context.getEventsForPattern("a1").iterator().next().place < window;
            }
        };
    }

    /** A condition on an event and the last one bound to `name`, or, where there is none, to `otherwise`. */
    private static IterativeCondition<Event> against(String name, String otherwise, Pair pair) {
        return new IterativeCondition<Event>() {
            @Override
            public boolean filter(Event event, Context<Event> context) throws Exception {
                Event before = last(context, name);
                if (before == null && otherwise != null) {
                    before = last(context, otherwise);
                }
                return before != null && pair.holds(event, before);
            }
        };
    }

    private static Event last(IterativeCondition.Context<Event> context, String name) throws Exception {
        Event found = null;
        for (Event event : context.getEventsForPattern(name)) {
            found = event;
        }
        return found;
    }

    private Patterns() {}
}
