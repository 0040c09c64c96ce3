#include "mail/api.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "mime/utf8.h"
#include "net/budget.h"
#include "net/known_hosts.h"
#include "store/pause.h"

namespace tabella::mail {

using boost::asio::awaitable;

namespace {

constexpr size_t kShownAtOnce = 8;

// Whether the path has the shape of the pattern; what stands in for its stars goes to `captured`.
bool fits(std::string_view pattern, const std::vector<std::string>& segments,
          std::vector<std::string>& captured) {
  const auto wanted = split(pattern.substr(1), '/');
  if (wanted.size() != segments.size()) return false;
  captured.clear();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == "*" && !segments[i].empty())
      captured.push_back(segments[i]);
    else if (wanted[i] != segments[i])
      return false;
  }
  return true;
}

bool changes_something(std::string_view method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS";
}

}  // namespace

std::span<const Api::Route> Api::routes() {
  static constexpr Route kRoutes[] = {
      {"GET", "/api/v1/messages", &Api::v1_list},
      {"DELETE", "/api/v1/messages", &Api::v1_delete_all},
      {"GET", "/api/v1/messages/*", &Api::v1_get},
      {"DELETE", "/api/v1/messages/*", &Api::v1_delete},
      {"GET", "/api/v1/messages/*/download", &Api::v1_download},
      {"GET", "/api/v1/messages/*/mime/part/*/download", &Api::v1_part},
      {"POST", "/api/v1/messages/*/release", &Api::v1_release},
      {"GET", "/api/v1/events", &Api::v1_events},
      {"GET", "/api/v2/messages", &Api::v2_list},
      {"GET", "/api/v2/search", &Api::v2_search},
      {"GET", "/api/v2/jim", &Api::v2_jim_get},
      {"POST", "/api/v2/jim", &Api::v2_jim_post},
      {"PUT", "/api/v2/jim", &Api::v2_jim_put},
      {"DELETE", "/api/v2/jim", &Api::v2_jim_delete},
      {"GET", "/api/v2/outgoing-smtp", &Api::v2_outgoing},
      {"GET", "/api/v2/websocket", &Api::v2_websocket},
      {"GET", "/api/v3/messages", &Api::v3_list},
      {"DELETE", "/api/v3/messages", &Api::v3_delete_found},
      {"GET", "/api/v3/messages/*", &Api::v3_get},
      {"PUT", "/api/v3/messages/*", &Api::v3_update},
      {"DELETE", "/api/v3/messages/*", &Api::v3_delete},
      {"GET", "/api/v3/messages/*/raw", &Api::v3_raw},
      {"GET", "/api/v3/messages/*/html", &Api::v3_html},
      {"GET", "/api/v3/messages/*/text", &Api::v3_text},
      {"GET", "/api/v3/messages/*/parts/*", &Api::v3_part},
      {"POST", "/api/v3/messages/*/release", &Api::v1_release},
      {"GET", "/api/v3/wait", &Api::v3_wait},
      {"POST", "/api/v3/assert", &Api::v3_assert},
      {"GET", "/api/v3/inboxes", &Api::v3_inboxes},
      {"GET", "/api/v3/inboxes/*/messages", &Api::v3_inbox},
      {"DELETE", "/api/v3/inboxes/*/messages", &Api::v3_inbox_delete},
      {"GET", "/api/v3/tags", &Api::v3_tags},
      {"GET", "/api/v3/stats", &Api::v3_stats},
      {"GET", "/api/v3/webhooks", &Api::v3_webhooks},
      {"POST", "/api/v3/webhooks", &Api::v3_webhook_add},
      {"DELETE", "/api/v3/webhooks/*", &Api::v3_webhook_delete},
      {"GET", "/api/v3/scenario", &Api::v3_scenario_get},
      {"PUT", "/api/v3/scenario", &Api::v3_scenario_put},
      {"DELETE", "/api/v3/scenario", &Api::v3_scenario_delete},
      {"GET", "/", &Api::page_list},
      {"POST", "/delete-all", &Api::page_delete_all},
      {"GET", "/view/*", &Api::page_message},
      {"POST", "/view/*/delete", &Api::page_delete},
      {"POST", "/view/*/release", &Api::page_release},
  };
  return kRoutes;
}

// Pages of others may not change anything here, nor listen: browsers say where a request comes from.
bool Api::may_call(const net::HttpRequest& request, net::HttpResponse& response) const {
  const bool ours = net::may_call(request, options_.cors_origin);
  const bool listens = net::same_header(request.header("upgrade"), "websocket");
  if (ours || !(changes_something(request.method) || listens)) return true;
  answer_error(response, 403, "pages of another origin may not do that; --cors-origin allows one");
  return false;
}

void Api::add_cors(const Call& call) const {
  if (options_.cors_origin.empty() || call.target.segments.front() != "api") return;
  const bool first = call.target.segments.size() > 1 && call.target.segments[1] == "v1";
  call.response.add_header("Access-Control-Allow-Origin", options_.cors_origin);
  call.response.add_header("Access-Control-Allow-Methods",
                           first ? "OPTIONS,GET,POST,DELETE" : "OPTIONS,GET,PUT,POST,DELETE");
  call.response.add_header("Access-Control-Allow-Headers", "Content-Type");
}

awaitable<void> Api::handle(const net::HttpRequest& request, net::HttpResponse& response) {
  auto path = request.target;
  if (!options_.web_path.empty()) {
    if (!path.starts_with(options_.web_path) ||
        (path.size() > options_.web_path.size() && path[options_.web_path.size()] != '/' &&
         path[options_.web_path.size()] != '?')) {
      answer_error(response, 404, fmt::format("paths begin with {} here", options_.web_path));
      co_return;
    }
    path.remove_prefix(options_.web_path.size());
  }
  auto target =
      net::parse_target(path.empty() || path.starts_with('?') ? "/" + std::string(path) : std::string(path));
  if (!target) {
    answer_error(response, 400, "the path cannot be read");
    co_return;
  }
  if (target->segments.size() > 1 && target->segments.back().empty()) target->segments.pop_back();
  Call call{.request = request, .response = response, .target = std::move(*target), .captured = {}};
  add_cors(call);
  if (!may_call(request, response)) co_return;
  const auto method = request.method == "HEAD" ? std::string_view("GET") : request.method;
  std::string allowed;
  for (const auto& route : routes()) {
    if (!fits(route.path, call.target.segments, call.captured)) continue;
    if (route.method == method) {
      try {
        co_await (this->*route.handler)(call);
      } catch (const std::exception& error) {
        log::error("{} {}: {}", request.method, path, error.what());
        response.clear();
        answer_error(response, 500, "something went wrong here; see the log");
      }
      co_return;
    }
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
  }
  if (allowed.empty()) {
    answer_error(response, 404, "there is nothing here; docs/mail.md lists what there is");
  } else if (method == "OPTIONS") {
    response.add_header("Allow", allowed + ", OPTIONS");
  } else {
    response.add_header("Allow", allowed + ", OPTIONS");
    answer_error(response, 405, "use " + allowed);
  }
}

void answer_error(net::HttpResponse& response, int status, std::string_view message) {
  response.status = status;
  response.content_type = kJson;
  response.body.clear();
  JsonObjectWriter object(response.body);
  object.string("error", mime::to_valid_utf8(message));
}

void answer_error(net::HttpResponse& response, const store::Error& error) {
  answer_error(response, error.code == store::ErrorCode::internal ? 500 : 503, error.message);
}

Deadline deadline_of(const net::Target& target, std::chrono::milliseconds otherwise) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::minutes{10};
  const auto given = parse_duration(target.get("timeout"));
  const auto length = target.has("timeout") && given ? std::min(*given, kLongest) : otherwise;
  return std::chrono::steady_clock::now() + length;
}

size_t number_in(const net::Target& target, std::string_view name, size_t fallback) {
  const auto text = target.get(name);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && value > 0 ? static_cast<size_t>(value) : fallback;
}

void add_sandbox(net::HttpResponse& response) {
  response.add_header(
      "Content-Security-Policy",
      "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src data:; "
      "style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'");
  response.add_header("X-Content-Type-Options", "nosniff");
  response.add_header("Referrer-Policy", "no-referrer");
  response.add_header("Cache-Control", "private, no-store");
}

bool Api::count_memory(const Call& call, size_t bytes) {
  if (!call.request.unpacked || call.request.unpacked->resize(bytes)) return true;
  call.response.add_header("Retry-After", "1");
  answer_error(call.response, 503, "too many large answers are under way; try again");
  return false;
}

awaitable<std::optional<Message>> Api::load_or_answer(Call& call) {
  constexpr size_t kCopies = 3;  // as it is stored, in one piece, and as it is shown
  auto message = co_await mail_.load(call.captured.front(), Load::head);
  if (message && *message && !count_memory(call, kCopies * (*message)->size)) co_return std::nullopt;
  if (message && *message)
    if (auto completed = co_await mail_.complete(**message); !completed) message = store::error_of(completed);
  if (!message) {
    answer_error(call.response, message.error());
    co_return std::nullopt;
  }
  if (!*message) answer_error(call.response, 404, "there is no such message");
  co_return std::move(*message);
}

store::Async<void> Api::each_message(MessagePage& page, const Show& show) {
  Pace pace;
  for (auto& message : page.messages) {
    co_await pace.go_on();
    auto shown = co_await show(message);
    if (!shown) co_return store::error_of(shown);
    message = {};  // its memory is needed for those that follow
  }
  for (size_t at = 0; at < page.later.size(); at += kShownAtOnce) {
    const auto begin = page.later.begin() + static_cast<ptrdiff_t>(at);
    const auto end =
        page.later.begin() + static_cast<ptrdiff_t>(std::min(at + kShownAtOnce, page.later.size()));
    auto messages = co_await mail_.load_some(std::vector<std::string>(begin, end), Load::head);
    if (!messages) co_return store::error_of(messages);
    for (auto& message : *messages) {
      co_await pace.go_on();
      auto shown = co_await show(message);
      if (!shown) co_return store::error_of(shown);
    }
  }
  co_return store::Result<void>();
}

store::Async<void> Api::complete(Message& message, net::BudgetShare& room, Deadline deadline) {
  constexpr std::chrono::milliseconds kLooksAgain{10};
  if (message.whole) co_return store::Result<void>();
  // One that is larger than all the room there is has it for itself.
  while (!room.resize(std::min<size_t>(message.size, kLargeMessages))) {
    if (stopping_ || std::chrono::steady_clock::now() > deadline)
      co_return store::fail(store::ErrorCode::unavailable, "too many large messages are being read at once");
    co_await store::pause_for(kLooksAgain);
  }
  co_return co_await mail_.complete(message);
}

}  // namespace tabella::mail
