// An event as the peers see it, and the file that experiments/peers/files.py writes.
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

public class Event {
    public long id;     // its row
    public long ts;
    public int type;    // 0 is A, or Stock
    public int key;
    public int price;
    public int volume;
    public long place;  // its position among the events of its key

    public static Event[] read(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            LongBuffer numbers = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size())
                    .order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
            int size = (int) numbers.get(0);
            Event[] events = new Event[size];
            for (int i = 0; i < size; i++) {
                Event event = new Event();
                event.id = i;
                event.ts = numbers.get(1 + i);
                event.type = (int) numbers.get(1 + size + i);
                event.key = (int) numbers.get(1 + 2 * size + i);
                event.price = (int) numbers.get(1 + 3 * size + i);
                event.volume = (int) numbers.get(1 + 4 * size + i);
                event.place = numbers.get(1 + 5 * size + i);
                events[i] = event;
            }
            return events;
        }
    }
}
