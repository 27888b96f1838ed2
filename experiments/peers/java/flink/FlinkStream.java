// Flink CEP through a DataStream in a local mini cluster, or Flink SQL's MATCH_RECOGNIZE: "v-shape-sql", or a query.
// Arguments: file of events, pattern, window, limit in seconds, events to begin with. Time runs from the first event on.
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.util.Collector;

public final class FlinkStream {
    private static final AtomicLong MATCHES = new AtomicLong();
    private static Event[] events;

    private static final String V_SHAPE = """
            SELECT * FROM events MATCH_RECOGNIZE (
                PARTITION BY `key` ORDER BY row_time
                MEASURES P.id AS p_id, FIRST(D.id) AS d_id, FIRST(U.id) AS u_id, E.id AS e_id
                ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
                PATTERN (P S D+ U+ E)
                DEFINE
                    S AS S.price >= P.price,
                    D AS (LAST(D.price, 1) IS NULL AND D.price < S.price) OR D.price < LAST(D.price, 1),
                    U AS (LAST(U.price, 1) IS NULL AND U.price > LAST(D.price)) OR U.price > LAST(U.price, 1),
                    E AS E.price <= LAST(U.price))""";

    public static void main(String[] arguments) throws Exception {
        events = Event.read(Path.of(arguments[0]));
        String name = arguments[1];
        long window = Long.parseLong(arguments[2]);
        String query = name.startsWith("SELECT") ? name : name.endsWith("-sql") ? V_SHAPE : null;
        Timed.report(rows -> query != null ? sql(rows, query) : match(rows, name, window),
                events.length, Integer.parseInt(arguments[4]), Double.parseDouble(arguments[3]));
        System.exit(0); // the mini cluster leaves threads
    }

    private static StreamExecutionEnvironment environment() {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration());
        environment.setParallelism(1);
        environment.getConfig().enableObjectReuse();
        MATCHES.set(0);
        return environment;
    }

    private static DataStream<Event> source(StreamExecutionEnvironment environment, int rows) {
        return environment.fromSequence(0, rows - 1)
                .map(i -> {
                    if (i == 0) {
                        Timed.begin();
                    }
                    return events[i.intValue()];
                })
                .returns(TypeInformation.of(Event.class))
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Event>forMonotonousTimestamps().withTimestampAssigner((e, t) -> e.ts));
    }

    private static long match(int rows, String name, long window) throws Exception {
        StreamExecutionEnvironment environment = environment();
        boolean keyed = !name.startsWith("w3");
        CEP.pattern(source(environment, rows).keyBy(e -> keyed ? e.key : 0), Patterns.of(name, window, false))
                .inEventTime()
                .process(new PatternProcessFunction<Event, Long>() {
                    @Override
                    public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
                        out.collect((long) Patterns.select(name, match).size());
                    }
                }, Types.LONG)
                .map(found -> {
                    MATCHES.incrementAndGet();
                    return found;
                })
                .returns(Types.LONG)
                .sinkTo(new DiscardingSink<>());
        environment.execute();
        return MATCHES.get();
    }

    private static long sql(int rows, String query) throws Exception {
        StreamExecutionEnvironment environment = environment();
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        tables.createTemporaryView("events", source(environment, rows), Schema.newBuilder()
                .column("id", "BIGINT").column("key", "INT").column("price", "INT")
                .columnByMetadata("row_time", "TIMESTAMP_LTZ(3)", "rowtime", true)
                .watermark("row_time", "SOURCE_WATERMARK()").build());
        tables.toDataStream(tables.sqlQuery(query))
                .map(found -> {
                    MATCHES.incrementAndGet();
                    return 1L;
                })
                .returns(Types.LONG)
                .sinkTo(new DiscardingSink<>());
        environment.execute();
        return MATCHES.get();
    }

    private FlinkStream() {}
}
