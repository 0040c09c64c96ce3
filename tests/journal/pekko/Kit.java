import com.typesafe.config.ConfigFactory;
import org.apache.pekko.persistence.japi.journal.JavaJournalSpec;
import org.apache.pekko.persistence.japi.snapshot.JavaSnapshotStoreSpec;

/** What Pekko demands of every journal and of every snapshot store: its own tests, from its technology compatibility kit. */
@SuppressWarnings("serial")
public class Kit {
  public static class Journal extends JavaJournalSpec {
    public Journal() { super(ConfigFactory.load()); }
  }

  public static class Snapshots extends JavaSnapshotStoreSpec {
    public Snapshots() { super(ConfigFactory.load()); }
  }
}
