import java.nio.charset.StandardCharsets;
import org.apache.pekko.persistence.journal.EventAdapter;
import org.apache.pekko.persistence.journal.EventSeq;
import org.apache.pekko.serialization.SerializerWithStringManifest;

/** An event with a serializer and an adapter of its own: what it leaves in the table has both their manifests. */
public record Note(String text) {
  public static class Serializer extends SerializerWithStringManifest {
    @Override public int identifier() { return 4711; }

    @Override public String manifest(Object note) { return "note/1"; }

    @Override public byte[] toBinary(Object note) { return ((Note) note).text().getBytes(StandardCharsets.UTF_8); }

    @Override public Object fromBinary(byte[] bytes, String manifest) {
      if (!manifest.equals("note/1")) throw new IllegalArgumentException("not a note: " + manifest);
      return new Note(new String(bytes, StandardCharsets.UTF_8));
    }
  }

  public static class Adapter implements EventAdapter {
    @Override public String manifest(Object note) { return "adapted"; }

    @Override public Object toJournal(Object note) { return note; }

    @Override public EventSeq fromJournal(Object note, String manifest) {
      if (!manifest.equals("adapted")) throw new IllegalArgumentException("not adapted: " + manifest);
      return EventSeq.single(note);
    }
  }
}
