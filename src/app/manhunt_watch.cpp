#include "app/manhunt_watch.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "base/json.h"
#include "base/text.h"
#include "net/outbound.h"
#include "net/target.h"

namespace tabella::app {
namespace {

using std::chrono::steady_clock;

constexpr int kLookEvery = 300;  // milliseconds
constexpr size_t kMostShown = 5;
constexpr std::chrono::seconds kShownOnceOver{60};

volatile std::sig_atomic_t stopped = 0;
void stop_watching(int) { stopped = 1; }

struct Phone {
  std::string domain;
  std::string search;
  std::string attempt;
  std::string name;
  std::string kind;
  std::string destination;
  std::string text;

  bool operator==(const Phone&) const = default;
};

struct WatchedSearch {
  std::string domain;
  std::string id;
  std::string drawing;
  bool over = false;
  steady_clock::time_point over_since;
};

// A server, asked one thing after the other.
class Server {
 public:
  explicit Server(const ManhuntWatchOptions& options) : options_(options), outbound_({}) {}

  // The body of a good answer; otherwise a sentence.
  std::expected<std::string, std::string> ask(std::string method, const std::string& path,
                                              std::string body = {}) {
    net::OutboundRequest request{
        .method = std::move(method), .url = options_.url + path, .body = std::move(body), .trusted = true};
    if (!options_.token.empty()) request.headers.emplace_back("Authorization", "Bearer " + options_.token);
    auto answered =
        boost::asio::co_spawn(context_, outbound_.send(std::move(request)), boost::asio::use_future);
    context_.restart();
    context_.run();
    const auto reply = answered.get();
    if (!reply) return std::unexpected(reply.error().message);
    if (reply->status / 100 == 2) return reply->body;
    JsonDocument document;
    const auto json = document.parse(reply->body);
    const auto error = json && json->is_object() ? json->text("error") : std::string_view();
    return std::unexpected(error.empty() ? fmt::format("it answered {}", reply->status) : printable(error));
  }

 private:
  const ManhuntWatchOptions& options_;
  boost::asio::io_context context_;
  net::Outbound outbound_;
};

// Keys without Enter, on a screen of its own, for as long as it is there.
class Terminal {
 public:
  Terminal() {
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before_) != 0) return;
    is_one_ = true;
    auto raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    std::fputs("\x1b[?1049h\x1b[?25l", stdout);
  }
  ~Terminal() {
    if (!is_one_) return;
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool is_one() const { return is_one_; }
  // The key that is pressed meanwhile, if one is.
  std::optional<char> wait(int milliseconds) const {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    char key = 0;
    if (!is_one_) {
      poll(nullptr, 0, milliseconds);
      return std::nullopt;
    }
    if (poll(&input, 1, milliseconds) <= 0 || read(STDIN_FILENO, &key, 1) != 1) return std::nullopt;
    return key;
  }

 private:
  termios before_{};
  bool is_one_ = false;
};

class Watch {
 public:
  explicit Watch(const ManhuntWatchOptions& options) : options_(options), server_(options) {}

  int run() {
    std::signal(SIGINT, stop_watching);
    std::signal(SIGTERM, stop_watching);
    if (!look()) {
      fmt::print(stderr, "tabella: {} cannot be watched: {}\n", options_.url, problem_);
      return 1;
    }
    const Terminal terminal;
    std::string shown;
    while (!stopped) {
      const auto view = terminal.is_one() ? screen() : plain();
      if (view != shown) {
        if (terminal.is_one()) std::fputs("\x1b[H\x1b[2J", stdout);
        std::fputs(view.c_str(), stdout);
        std::fflush(stdout);
        shown = view;
      }
      if (options_.once) break;
      if (const auto key = terminal.wait(kLookEvery))
        if (!press(*key)) break;
      look();
    }
    return 0;
  }

 private:
  bool look() {
    const auto asked = server_.ask(
        "GET", "/manhunt/simulator" +
                   (options_.domain.empty() ? "" : "?domain=" + net::percent_encode(options_.domain)));
    if (!asked) {
      problem_ = asked.error();
      return false;
    }
    problem_.clear();
    read_phones(*asked);
    for (const auto& phone : phones_) add_search(phone.domain, phone.search);
    if (!options_.domain.empty()) look_for_searches();
    for (auto& search : searches_) draw(search);
    const auto now = steady_clock::now();
    std::erase_if(searches_,
                  [&](const auto& each) { return each.over && now - each.over_since > kShownOnceOver; });
    return true;
  }

  void read_phones(const std::string& json) {
    JsonDocument document;
    const auto parsed = document.parse(json);
    const auto list = parsed && parsed->is_object() ? parsed->find("phones") : std::nullopt;
    phones_.clear();
    if (!list || list->kind() != JsonValue::Kind::array) return;
    for (JsonElements each(*list); each.next() && phones_.size() < 9;) {
      const auto member = [&](std::string_view name) { return printable(each.value().text(name)); };
      phones_.push_back({.domain = member("domain"),
                         .search = member("search"),
                         .attempt = member("attempt"),
                         .name = member("contact_name"),
                         .kind = member("type"),
                         .destination = member("destination"),
                         .text = member("text")});
    }
    // The longest that rings first: a number stays that of its phone.
    std::ranges::reverse(phones_);
    selected_ = std::min(selected_, phones_.empty() ? 0 : phones_.size() - 1);
  }

  void look_for_searches() {
    const auto asked = server_.ask("GET", fmt::format("/manhunt/{}/searches?status=active&limit={}",
                                                      net::percent_encode(options_.domain), kMostShown));
    JsonDocument document;
    const auto parsed = asked ? document.parse(*asked) : std::nullopt;
    const auto list = parsed && parsed->is_object() ? parsed->find("searches") : std::nullopt;
    if (!list || list->kind() != JsonValue::Kind::array) return;
    for (JsonElements each(*list); each.next();)
      add_search(options_.domain, std::string(each.value().text("id")));
  }

  void add_search(const std::string& domain, const std::string& id) {
    if (std::ranges::find(searches_, id, &WatchedSearch::id) != searches_.end()) return;
    if (searches_.size() >= kMostShown) {
      const auto over = std::ranges::find(searches_, true, &WatchedSearch::over);
      if (over == searches_.end()) return;
      searches_.erase(over);
    }
    searches_.push_back({.domain = domain, .id = id});
  }

  void draw(WatchedSearch& search) {
    if (search.over) return;
    const auto drawn =
        server_.ask("GET", fmt::format("/manhunt/{}/searches/{}/timeline?draw=text",
                                       net::percent_encode(search.domain), net::percent_encode(search.id)));
    if (!drawn) return;
    search.drawing = *drawn;
    search.over = !search.drawing.contains("fails, if nobody answers");
    if (search.over) search.over_since = steady_clock::now();
  }

  // False: it is over.
  bool press(char key) {
    if (key == 'q' || key == 'Q' || key == 4) return false;
    if (key >= '1' && key <= '9') {
      const auto number = static_cast<size_t>(key - '1');
      if (number < phones_.size()) selected_ = number;
    } else if (key == 'a' || key == 'd' || key == 'h') {
      answer(key);
    }
    return true;
  }

  void answer(char key) {
    if (selected_ >= phones_.size()) return;
    const auto& phone = phones_[selected_];
    const auto* body = key == 'h'   ? R"({"hang_up": true})"
                       : key == 'a' ? R"({"press": "1"})"
                                    : R"({"press": "2"})";
    const auto answered =
        server_.ask("POST", fmt::format("/manhunt/simulator/{}/{}", phone.search, phone.attempt), body);
    if (!answered) problem_ = answered.error();
  }

  std::string phone_lines() const {
    std::string out;
    for (size_t i = 0; i < phones_.size(); ++i) {
      const auto& phone = phones_[i];
      const auto line = std::string_view(phone.text).substr(0, 100);
      out += fmt::format("{} {}  {:<6} {} {} ({})  {}\n", i == selected_ ? ">" : " ", i + 1, phone.kind,
                         phone.name, phone.destination, phone.domain, to_valid_utf8(line));
    }
    return out.empty() ? "  No phone rings.\n" : out;
  }

  std::string drawings() const {
    std::string out;
    for (const auto& search : searches_) out += "\n" + search.drawing;
    return out;
  }

  std::string screen() const {
    return fmt::format(
        "Manhunt at {}\n{}\n{}\n  a accepts · d declines · h hangs up · 1–9 choose a phone · q quits\n{}",
        options_.url, problem_.empty() ? "" : "! " + problem_, phone_lines(), drawings());
  }
  // Where nobody can press a key.
  std::string plain() const { return phone_lines() + drawings() + "\n"; }

  const ManhuntWatchOptions& options_;
  Server server_;
  std::vector<Phone> phones_;
  std::vector<WatchedSearch> searches_;
  size_t selected_ = 0;
  std::string problem_;
};

}  // namespace

int manhunt_watch(const ManhuntWatchOptions& options) { return Watch(options).run(); }

}  // namespace tabella::app
