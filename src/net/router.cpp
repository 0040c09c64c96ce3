#include "net/router.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"

namespace tabella::net {

using boost::asio::awaitable;

namespace {

void answer_failure(HttpResponse& response) {
  response.clear();
  answer_error(response, 500, "something went wrong here; see the log");
}

}  // namespace

struct Router::Entry {
  explicit Entry(Route r) : route(std::move(r)) {}
  Route route;
  std::vector<std::string> names;              // of what its path captures, in their order
  std::array<metrics::Counter, 6> by_class{};  // requests by the first digit of their status
  metrics::Histogram took{metrics::latency_bounds()};
};

// One segment of the paths: what may follow it, and who answers where a path ends here.
struct Router::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literal;
  std::unique_ptr<Node> captured;
  std::vector<Entry*> entries;  // one for each method, as they were added
};

struct Router::Match {
  const Node* node = nullptr;
  std::vector<std::string> captured;

  Entry* by(std::string_view method) const {
    if (!node) return nullptr;
    const auto wanted = method == "HEAD" ? std::string_view("GET") : method;
    const auto found =
        std::ranges::find(node->entries, wanted, [](auto* entry) { return entry->route.method; });
    return found == node->entries.end() ? nullptr : *found;
  }
  std::string methods() const {
    std::string text;
    for (const auto* entry : node->entries) text += entry->route.method + ", ";
    return text + "OPTIONS";
  }
};

Router::Router(Options options, Gate* gate)
    : options_(std::move(options)), gate_(gate), root_(std::make_unique<Node>()) {}
Router::~Router() = default;

void Router::add(Route route) {
  if (!route.path.starts_with('/') || !route.handler || route.summary.empty() || route.scope.empty())
    throw std::logic_error(fmt::format("the route {} {} says too little", route.method, route.path));
  auto entry = std::make_unique<Entry>(std::move(route));
  auto* node = root_.get();
  for (const auto segment : split(std::string_view(entry->route.path).substr(1), '/')) {
    const bool captures = segment.starts_with('{') && segment.ends_with('}');
    if (captures) entry->names.emplace_back(segment.substr(1, segment.size() - 2));
    auto& next = captures ? node->captured : node->literal[std::string(segment)];
    if (!next) next = std::make_unique<Node>();
    node = next.get();
  }
  if (std::ranges::any_of(node->entries,
                          [&](auto* other) { return other->route.method == entry->route.method; }))
    throw std::logic_error(fmt::format("{} {} is served twice", entry->route.method, entry->route.path));
  node->entries.push_back(entry.get());
  entries_.push_back(std::move(entry));
}

std::vector<const Route*> Router::routes() const {
  std::vector<const Route*> all;
  all.reserve(entries_.size());
  for (const auto& entry : entries_) all.push_back(&entry->route);
  return all;
}

std::string_view Router::path_of(std::string_view target, bool& at_root) const {
  const auto& before = options_.web_path;
  const auto rest = target.substr(std::min(before.size(), target.size()));
  at_root = !target.starts_with(before) || (!rest.empty() && rest[0] != '/' && rest[0] != '?');
  return at_root ? target : rest;
}

// Words go before what captures; where they lead nowhere, the latter is tried.
const Router::Node* Router::walk(const Node& node, std::span<const std::string> segments,
                                 std::vector<std::string>& captured) {
  if (segments.empty()) return node.entries.empty() ? nullptr : &node;
  const auto& segment = segments.front();
  if (const auto literal = node.literal.find(segment); literal != node.literal.end())
    if (const auto* found = walk(*literal->second, segments.subspan(1), captured)) return found;
  if (!node.captured || segment.empty()) return nullptr;
  captured.push_back(segment);
  if (const auto* found = walk(*node.captured, segments.subspan(1), captured)) return found;
  captured.pop_back();
  return nullptr;
}

Router::Match Router::find(const std::vector<std::string>& segments) const {
  Match match;
  std::span<const std::string> all = segments;
  if (all.size() > 1 && all.back().empty()) all = all.first(all.size() - 1);  // "/mail/" is "/mail"
  match.node = walk(*root_, all, match.captured);
  return match;
}

size_t Router::body_limit(const HttpRequest& request) const {
  constexpr size_t kOfNobody = 64 * 1024;
  bool at_root = false;
  const auto target = parse_target(path_of(request.target, at_root));
  const auto* entry = target ? find(target->segments).by(request.method) : nullptr;
  return entry ? entry->route.max_body : kOfNobody;
}

void Router::add_cors(Call& call, const Match& match) const {
  if (options_.cors_origin.empty() || !match.node) return;
  call.response.add_header("Access-Control-Allow-Origin", options_.cors_origin);
  if (options_.cors_origin != "*") call.response.add_header("Vary", "Origin");
  call.response.add_header("Access-Control-Allow-Methods", match.methods());
  call.response.add_header(
      "Access-Control-Allow-Headers",
      "Content-Type, Authorization, X-API-Key, X-Inbox-User, X-Inbox-Hmac, Last-Event-ID");
}

// Browsers say which page a request comes from; pages of others get nothing here.
bool Router::may_call(Call& call) const {
  if (net::may_call(call.request, options_.cors_origin)) return true;
  call.refuse(403, "pages of another origin may not do that; --cors-origin allows one");
  return false;
}

// Credentials, and whether they are good for this. False: that was answered.
awaitable<bool> Router::admit(Call& call, const Entry* entry) {
  if (entry && entry->route.scope == kAnybody) co_return true;
  if (!gate_) co_return true;
  auto admitted = co_await gate_->admit(call.request);
  const bool handler_decides = entry && !entry->route.own_credentials.empty();
  if (auto* refusal = std::get_if<Refusal>(&admitted)) {
    if (handler_decides)
      call.not_admitted = std::move(*refusal);
    else
      call.refuse(*refusal);
    co_return handler_decides;
  }
  call.caller = std::move(std::get<Caller>(admitted));
  if (!entry || handler_decides || call.caller.may(entry->route.scope)) co_return true;
  call.refuse(403,
              fmt::format("{} lacks the scope {}", call.caller.name.empty() ? "the caller" : call.caller.name,
                          entry->route.scope));
  co_return false;
}

awaitable<void> Router::handle(const HttpRequest& request, HttpResponse& response) {
  bool at_root = false;
  const auto path = path_of(request.target, at_root);
  auto target =
      parse_target(path.empty() || path.starts_with('?') ? "/" + std::string(path) : std::string(path));
  if (!target) co_return answer_error(response, 400, "the path cannot be read");
  auto match = find(target->segments);
  Call call(request, response, std::move(*target));
  try {
    co_await dispatch(call, match, at_root);
  } catch (const std::exception& error) {
    log::error("{} {}: {}", request.method, path.substr(0, path.find('?')), error.what());
    answer_failure(response);
  }
}

// Whether the process is alive is asked by whatever name it has there.
bool Router::is_for_any_host(const Entry* entry) {
  return entry && entry->route.at_root && entry->route.scope == kAnybody;
}

awaitable<void> Router::dispatch(Call& call, const Match& match, bool at_root) {
  const auto& request = call.request;
  auto* entry = match.by(request.method);
  if (at_root && !options_.web_path.empty() && (!entry || !entry->route.at_root))
    co_return call.refuse(404, fmt::format("paths begin with {} here", options_.web_path));
  if (!options_.hosts.knows(request.header("host")) && !is_for_any_host(entry))
    co_return call.refuse(403, "this name is not known here; --allow-host makes it so");
  if (!may_call(call)) co_return;
  add_cors(call, match);
  // A browser asks without credentials whether it may ask.
  const bool preflight = request.method == "OPTIONS" && request.has_header("origin") && match.node;
  if (preflight) {
    call.response.add_header("Allow", match.methods());
    co_return;
  }
  if (!co_await admit(call, entry)) co_return;
  if (entry) {
    for (size_t i = 0; i < entry->names.size(); ++i)
      call.captured_.emplace_back(entry->names[i], match.captured[i]);
    co_return co_await run(call, *entry);
  }
  if (!match.node) co_return call.refuse(404, "there is nothing here; /openapi.json lists what there is");
  call.response.add_header("Allow", match.methods());
  if (request.method != "OPTIONS") call.refuse(405, "use " + match.methods());
}

awaitable<void> Router::run(Call& call, Entry& entry) {
  const auto begun = std::chrono::steady_clock::now();
  if (call.request.body.size() > entry.route.max_body) {
    call.refuse(413, fmt::format("the body is larger than {} bytes", entry.route.max_body));
  } else {
    try {
      co_await entry.route.handler(call);
    } catch (const std::exception& error) {
      log::error("{} {}: {}", entry.route.method, entry.route.path, error.what());
      answer_failure(call.response);
    }
  }
  entry.took.observe(std::chrono::steady_clock::now() - begun);
  ++entry.by_class[static_cast<size_t>(call.response.status / 100) % entry.by_class.size()];
}

void Router::write_metrics(metrics::Exposition& out) const {
  for (const auto& entry : entries_) {
    const auto& route = entry->route;
    bool any = false;
    for (size_t i = 0; i < entry->by_class.size(); ++i) {
      if (entry->by_class[i] == 0) continue;
      any = true;
      out.counter("tabella_http_requests_total", "Requests over HTTP that were answered",
                  static_cast<double>(entry->by_class[i]),
                  {{"method", route.method}, {"route", route.path}, {"status", fmt::format("{}xx", i)}});
    }
    if (any)
      out.histogram("tabella_http_request_seconds", "How long answers over HTTP took", entry->took,
                    {{"method", route.method}, {"route", route.path}});
  }
}

}  // namespace tabella::net
