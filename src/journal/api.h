// /journal over HTTP. Each subject has a file of its own: api_events.cpp, api_order.cpp, api_snapshots.cpp,
// api_consumers.cpp; what they share, and the lists of journals and entities, is in api.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "house/routes.h"
#include "journal/append_request.h"
#include "journal/consumers.h"
#include "journal/counts.h"
#include "journal/journal.h"
#include "journal/order.h"
#include "journal/snapshots.h"
#include "journal/watch.h"
#include "net/call.h"
#include "net/streams.h"
#include "store/long_work.h"

namespace tabella::journal {

class Api {
 public:
  struct Parts {
    Journal& journal;
    const Order& order;
    Snapshots& snapshots;
    Consumers& consumers;
    Watch& watch;
    Counts& counts;
    const Clock& clock;
    store::LongWork long_work;
    std::string journal_name;  // what '-' stands for
  };
  explicit Api(Parts parts) : parts_(std::move(parts)) {}

  using Routes = house::Routes<Api>;
  static void add_routes(Routes routes);

  // Ends answers that wait.
  void stop();

 private:
  using Task = boost::asio::awaitable<void>;
  using Call = net::Call;

  // What a path names; if it is none, that was answered.
  std::optional<std::string> journal_of(Call& call) const;
  std::optional<Entity> entity_of(Call& call) const;

  Task list_journals(Call& call);
  Task list_entities(Call& call);
  store::Async<std::optional<Event>> last_event(Entity entity, const Head& head) const;

  // Events of an entity (api_events.cpp).
  static void add_event_routes(Routes& routes);
  Task show_entity(Call& call);
  Task append(Call& call);
  Task read_events(Call& call);
  Task answer_page(Call& call, Entity entity, Range range, size_t limit);
  Task answer_history(Call& call, Entity entity, Range range, size_t limit);
  Task follow_events(Call& call);
  Task tell_events(net::EventStream& stream, Entity entity, uint64_t from);
  Task delete_events(Call& call);
  Task confirm(Call& call);
  Task take_epoch(Call& call);

  // The order of all events (api_order.cpp).
  struct OrderRequest {
    std::string journal;
    Filter filter;
  };
  static void add_order_routes(Routes& routes);
  std::optional<OrderRequest> order_of(Call& call) const;
  Task read_order(Call& call);
  Task answer_order_page(Call& call, OrderRequest request, uint64_t from, Direction direction, size_t limit);
  Task answer_order(Call& call, OrderRequest request, uint64_t from, Direction direction, size_t limit);
  boost::asio::awaitable<bool> write_order(net::LineWriter& lines, OrderRequest request, OrderPage page,
                                           Direction direction, size_t limit);
  store::Async<OrderPage> read_page(const OrderRequest& request, uint64_t from, Direction direction,
                                    size_t limit) const;
  Task follow_order(Call& call);
  Task tell_order(net::EventStream& stream, OrderRequest request, uint64_t position);

  // Snapshots (api_snapshots.cpp).
  static void add_snapshot_routes(Routes& routes);
  Task list_snapshots(Call& call);
  Task newest_snapshot(Call& call);
  Task show_snapshot(Call& call);
  Task answer_snapshot(Call& call, Entity entity, SnapshotRange range);
  Task save_snapshot(Call& call);
  Task delete_snapshots(Call& call);

  // Consumers (api_consumers.cpp).
  static void add_consumer_routes(Routes& routes);
  std::optional<std::string> consumer_of(Call& call) const;
  Task list_consumers(Call& call);
  Task create_consumer(Call& call);
  Task answer_consumer(Call& call, int status, Consumer consumer);
  Task show_consumer(Call& call);
  Task delete_consumer(Call& call);
  Task read_consumer(Call& call);
  Task acknowledge(Call& call);
  Task release(Call& call);
  Task move_consumer(Call& call);
  Task refuse_read(Call& call, Consumer consumer);
  store::Async<std::variant<Delivery, Refused>> read_or_wait(Consumer consumer, std::string holder,
                                                             size_t limit, std::chrono::milliseconds lease,
                                                             std::chrono::milliseconds wait);

  const Parts parts_;
  std::atomic<bool> stopping_{false};
};

// Shared by its files.

// Whether the answer is to be lines of JSON. If ?format= is neither, that was answered.
bool wants_lines(net::Call& call);
// ?direction=
Direction direction_of(net::Call& call);
// A number of the path.
std::optional<uint64_t> path_number(net::Call& call, std::string_view name);
// Where a client of server-sent events goes on: behind its Last-Event-ID, or the query's `name`; nothing: it
// wants what comes from now on. If it is no number, that was answered.
std::optional<uint64_t> resume_after(net::Call& call, std::string_view name);

// How long a live reader waits before it looks for itself.
inline constexpr std::chrono::seconds kLiveWait{15};
// An answer in one piece has so many bytes at most, and an event more.
inline constexpr size_t kMaxPage = 4u << 20;
inline constexpr int64_t kMostInPage = 10'000;

// One answer that waits for events, counted.
class LiveReader {
 public:
  explicit LiveReader(Counts& counts) : counts_(counts) { ++counts_.live_readers; }
  ~LiveReader() { --counts_.live_readers; }
  LiveReader(const LiveReader&) = delete;
  LiveReader& operator=(const LiveReader&) = delete;

 private:
  Counts& counts_;
};

}  // namespace tabella::journal
