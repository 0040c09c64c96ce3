// Mail over HTTP: MailHog's API v1 and v2, ours under /api/v3, and a plain page.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "house/routes.h"
#include "mail/arrivals.h"
#include "mail/feed.h"
#include "mail/jim.h"
#include "mail/release.h"
#include "mail/service.h"
#include "net/budget.h"
#include "net/call.h"
#include "net/http.h"
#include "net/target.h"
#include "webhook/hooks.h"

namespace tabella::mail {

struct Assertion;

// Thread-safe.
class Api {
 public:
  Api(Mail& mail, Jim& jim, Arrivals& arrivals, Feed& feed, Release& release, webhook::Hooks& webhooks,
      std::string web_path)
      : mail_(mail),
        jim_(jim),
        arrivals_(arrivals),
        feed_(feed),
        release_(release),
        webhooks_(webhooks),
        web_path_(std::move(web_path)) {}

  using Call = net::Call;
  using Routes = house::Routes<Api>;
  static void add_routes(Routes routes);
  // Ends what waits for messages. Before the server is stopped.
  void stop() { stopping_ = true; }

 private:
  using Done = boost::asio::awaitable<void>;
  static void add_mailhog_routes(Routes& routes);
  static void add_live_routes(Routes& routes);
  static void add_v3_routes(Routes& routes);
  static void add_pages(Routes& routes);

  // api_mailhog.cpp
  Done v1_list(Call& call);
  Done v1_delete_all(Call& call);
  Done v1_get(Call& call);
  Done v1_delete(Call& call);
  Done v1_download(Call& call);
  Done v1_part(Call& call);
  Done v1_release(Call& call);
  Done v2_list(Call& call);
  Done v2_search(Call& call);
  Done v2_jim_get(Call& call);
  Done v2_jim_post(Call& call);
  Done v2_jim_put(Call& call);
  Done v2_jim_delete(Call& call);
  Done v2_outgoing(Call& call);
  // MailHog's JSON of messages, between two texts.
  struct List {
    std::string before;
    MessagePage page;
    std::string after;
  };
  // At once, or while it is made, if it is large.
  Done answer_list(Call& call, List list);
  boost::asio::awaitable<bool> write_list(List& list, net::BodyWriter& out);
  store::Async<void> write_message(Message& message, std::string& text, net::BodyWriter& out);

  // live.cpp
  Done v1_events(Call& call);
  Done v2_websocket(Call& call);
  Done v3_wait(Call& call);
  Done v3_assert(Call& call);
  // Puts what is wrong with the message behind `wrong`.
  store::Async<void> check(const Assertion& assertion, std::string id, std::vector<std::string>& wrong);

  // api_v3.cpp
  Done v3_list(Call& call);
  Done v3_get(Call& call);
  Done v3_update(Call& call);
  Done v3_delete(Call& call);
  Done v3_delete_found(Call& call);
  Done v3_raw(Call& call);
  Done v3_html(Call& call);
  Done v3_text(Call& call);
  Done v3_part(Call& call);
  Done v3_inboxes(Call& call);
  Done v3_inbox(Call& call);
  Done v3_inbox_delete(Call& call);
  Done v3_tags(Call& call);
  Done v3_stats(Call& call);
  Done v3_webhooks(Call& call);
  Done v3_webhook_add(Call& call);
  Done v3_webhook_delete(Call& call);
  Done v3_scenario_get(Call& call);
  Done v3_scenario_put(Call& call);
  Done v3_scenario_delete(Call& call);
  boost::asio::awaitable<void> list_found(Call& call, Filter filter);

  // page.cpp
  Done page_list(Call& call);
  Done page_message(Call& call);
  Done page_delete(Call& call);
  Done page_delete_all(Call& call);
  Done page_release(Call& call);

  // What several of them need.
  boost::asio::awaitable<std::optional<Message>> load_or_answer(Call& call);
  // Shows every message of the page, one after the other: few of them are in memory at a time.
  using Show = std::function<store::Async<void>(Message&)>;
  store::Async<void> each_message(MessagePage& page, const Show& show);
  // Reads the whole of a message for an answer that has many of them. All large ones that are in memory for
  // such answers take turns.
  store::Async<void> complete(Message& message, net::BudgetShare& room, Deadline deadline);
  net::BudgetShare room_for_one() { return {large_, kLargeMessages}; }
  static constexpr size_t kLargeMessages = 128u << 20;

  Mail& mail_;
  Jim& jim_;
  Arrivals& arrivals_;
  Feed& feed_;
  Release& release_;
  webhook::Hooks& webhooks_;
  const std::string web_path_;  // what paths begin with, as in "/mail"; empty: nothing
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> large_{0};  // bytes of large messages that lists have in memory
};

// Until when a request may take: its parameter `timeout`, or half a minute.
Deadline deadline_of(const net::Target& target,
                     std::chrono::milliseconds otherwise = std::chrono::seconds{30});

using net::answer_error;
inline constexpr const char* kJson = "application/json";
inline constexpr const char* kTextJson = "text/json";

// A number of a query; the fallback where there is none, or it is no number above 0.
size_t number_in(const net::Target& target, std::string_view name, size_t fallback);

// Headers for what came from strangers: nothing in it may run, load or be taken for something else.
void add_sandbox(net::HttpResponse& response);

}  // namespace tabella::mail
