import com.fasterxml.jackson.databind.ObjectMapper;
import com.typesafe.config.ConfigFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Props;

/**
 * Persistent actors on command: each line of the input is {"pid": …, "steps": […]}, for which a new actor recovers and
 * then takes the steps (see Entity). Each is answered by one line: what was recovered, or {"error": …}.
 */
public class Driver {
  public static void main(String[] arguments) throws Exception {
    // What is logged must not come between the answers.
    PrintStream answers = System.out;
    System.setOut(System.err);
    ObjectMapper json = new ObjectMapper();
    ActorSystem system = ActorSystem.create("driver", ConfigFactory.load());
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = commands.readLine()) != null;) {
      answers.println(json.writeValueAsString(run(system, json.readValue(line, Map.class))));
      answers.flush();
    }
    system.terminate();
    system.getWhenTerminated().toCompletableFuture().get(60, TimeUnit.SECONDS);
  }

  private static Map<String, Object> run(ActorSystem system, Map<?, ?> command) throws InterruptedException {
    CompletableFuture<Map<String, Object>> done = new CompletableFuture<>();
    String pid = (String) command.get("pid");
    List<?> steps = (List<?>) command.get("steps");
    ActorRef entity = system.actorOf(Props.create(Entity.class, () -> new Entity(pid, steps, done)));
    try {
      return done.get(60, TimeUnit.SECONDS);
    } catch (ExecutionException | TimeoutException failure) {
      return Map.of("error", failure.toString());
    } finally {
      system.stop(entity);
    }
  }

  /** An event or a snapshot in JSON: {"bytes": base64}, {"text": …} or {"note": …}. */
  static Map<String, Object> shown(Object payload) {
    Map<String, Object> result = new LinkedHashMap<>();
    if (payload instanceof byte[] bytes) result.put("bytes", Base64.getEncoder().encodeToString(bytes));
    else if (payload instanceof String text) result.put("text", text);
    else if (payload instanceof Note note) result.put("note", note.text());
    else throw new IllegalArgumentException("an unexpected " + payload.getClass());
    return result;
  }

  static Object payload(Object shown) {
    Map<?, ?> fields = (Map<?, ?>) shown;
    if (fields.get("bytes") instanceof String bytes) return Base64.getDecoder().decode(bytes);
    if (fields.get("text") instanceof String text) return text;
    if (fields.get("note") instanceof String note) return new Note(note);
    throw new IllegalArgumentException("neither bytes nor text nor note: " + shown);
  }

  static List<Object> payloads(List<?> shown) {
    List<Object> result = new ArrayList<>();
    for (Object one : shown) result.add(payload(one));
    return result;
  }
}
