// /outbox over HTTP.
#pragma once

#include <memory>
#include <string>

#include "house/routes.h"
#include "net/call.h"
#include "net/outbound.h"
#include "outbox/callbacks.h"
#include "outbox/composer.h"
#include "outbox/folder.h"
#include "outbox/live.h"
#include "outbox/payload.h"
#include "outbox/service.h"
#include "store/outcomes.h"

namespace tabella::outbox {

class Api {
 public:
  struct Parts {
    Outbox& outbox;
    const Composer& composer;
    Callbacks& callbacks;
    Live& live;
    store::Outcomes& outcomes;
    net::Outbound& outbound;
    const Folder* folder;  // null: there is none
    store::LongWork long_work;
    size_t max_size;
    std::chrono::milliseconds stale;
  };
  explicit Api(Parts parts) : parts_(parts) {}

  using Routes = house::Routes<Api>;
  static void add_routes(Routes routes, size_t max_body);

  // Takes one email, as POST /outbox/emails has it; for other systems of the process.
  store::Async<void> take(std::string json);

 private:
  using Task = boost::asio::awaitable<void>;
  using Call = net::Call;

  static void add_sending(Routes& routes, size_t max_body);
  static void add_watching(Routes& routes);
  static void add_stepping_in(Routes& routes);

  // Sending (api_send.cpp).
  Task send(Call& call);
  // What became of one element of the list.
  struct Sent {
    std::string id;
    std::string error;  // empty: accepted
    bool duplicate = false;
  };
  store::Async<Sent> send_one(JsonValue value, std::string otherwise_id);
  store::Async<Accepted> submit(Payload payload, JsonValue value);
  store::Async<void> keep_payload(Submission& submission, std::string json);

  // Watching (api.cpp).
  Task list(Call& call);
  Task list_in(Call& call, std::vector<State> states, std::optional<std::chrono::milliseconds> older_than);
  Task stale(Call& call);
  Task invalid_ones(Call& call);
  Task dead_letters(Call& call);
  Task show(Call& call);
  Task raw(Call& call);
  Task attempts(Call& call);
  Task counts(Call& call);
  Task events(Call& call);
  Task health(Call& call);

  // Stepping in (api.cpp).
  Task requeue(Call& call);
  Task cancel(Call& call);
  Task replay_callback(Call& call);
  Task list_suppressed(Call& call);
  Task add_suppressed(Call& call);
  Task remove_suppressed(Call& call);
  Task list_pauses(Call& call);
  Task pause(Call& call);
  Task resume(Call& call);

  const Parts parts_;
};

}  // namespace tabella::outbox
