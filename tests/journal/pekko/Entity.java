import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import org.apache.pekko.persistence.AbstractPersistentActor;
import org.apache.pekko.persistence.DeleteMessagesFailure;
import org.apache.pekko.persistence.DeleteMessagesSuccess;
import org.apache.pekko.persistence.RecoveryCompleted;
import org.apache.pekko.persistence.SaveSnapshotFailure;
import org.apache.pekko.persistence.SaveSnapshotSuccess;
import org.apache.pekko.persistence.SnapshotOffer;

/**
 * Recovers, takes its steps one after another, and answers {"snapshot": …, "events": […], "highest": N}: the snapshot
 * that it was offered, if any, the events replayed after it, and the sequence number that it has come to. The steps:
 *   {"persist": [event…]}      one write each
 *   {"persistAll": [event…]}   one atomic write
 *   {"snapshot": payload}      of the state at the sequence number that it has come to
 *   {"delete": N}              the events up to N
 */
public class Entity extends AbstractPersistentActor {
  private final String pid;
  private final Queue<Object> steps;
  private final CompletableFuture<Map<String, Object>> done;
  private final Map<String, Object> answer = new LinkedHashMap<>();
  private final List<Object> replayed = new ArrayList<>();

  Entity(String pid, List<?> steps, CompletableFuture<Map<String, Object>> done) {
    this.pid = pid;
    this.steps = new ArrayDeque<>(steps);
    this.done = done;
  }

  @Override public String persistenceId() { return pid; }

  @Override public Receive createReceiveRecover() {
    return receiveBuilder()
        .match(SnapshotOffer.class, offer -> {
          Map<String, Object> snapshot = Driver.shown(offer.snapshot());
          snapshot.put("sequence", offer.metadata().sequenceNr());
          snapshot.put("timestamp", offer.metadata().timestamp());
          answer.put("snapshot", snapshot);
        })
        .match(RecoveryCompleted.class, completed -> {
          answer.put("events", replayed);
          next();
        })
        .matchAny(event -> {
          Map<String, Object> shown = Driver.shown(event);
          shown.put("sequence", lastSequenceNr());
          replayed.add(shown);
        })
        .build();
  }

  @Override public Receive createReceive() {
    return receiveBuilder()
        .match(SaveSnapshotSuccess.class, success -> next())
        .match(SaveSnapshotFailure.class, failure -> done.completeExceptionally(failure.cause()))
        .match(DeleteMessagesSuccess.class, success -> next())
        .match(DeleteMessagesFailure.class, failure -> done.completeExceptionally(failure.cause()))
        .build();
  }

  private void next() {
    if (steps.isEmpty()) {
      answer.put("highest", lastSequenceNr());
      done.complete(answer);
      return;
    }
    Map<?, ?> step = (Map<?, ?>) steps.poll();
    if (step.get("persist") instanceof List<?> events) {
      for (Object event : Driver.payloads(events)) persist(event, written -> {});
      defer("written", written -> next());
    } else if (step.get("persistAll") instanceof List<?> events) {
      persistAll(Driver.payloads(events), written -> {});
      defer("written", written -> next());
    } else if (step.containsKey("snapshot")) {
      saveSnapshot(Driver.payload(step.get("snapshot")));
    } else {
      deleteMessages(((Number) step.get("delete")).longValue());
    }
  }

  @Override public void onPersistFailure(Throwable cause, Object event, long sequence) { done.completeExceptionally(cause); }

  @Override public void onPersistRejected(Throwable cause, Object event, long sequence) { done.completeExceptionally(cause); }

  @Override public void onRecoveryFailure(Throwable cause, scala.Option<Object> event) { done.completeExceptionally(cause); }
}
