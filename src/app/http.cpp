#include "app/http.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/base64.h"

namespace tabella::app {

namespace asio = boost::asio;
using asio::awaitable;

HttpDoor::HttpDoor(WriteMetrics write_metrics, Ailment ailment, Rest rest, Guard guard)
    : write_metrics_(std::move(write_metrics)),
      ailment_(std::move(ailment)),
      rest_(std::move(rest)),
      guard_(std::move(guard)) {
  if (!guard_.auth_file.empty()) passwords_.emplace(Passwords::read(guard_.auth_file));
}

// "Authorization: Basic " and user:password in base64.
awaitable<HttpDoor::Entry> HttpDoor::may_enter(const net::HttpRequest& request) {
  constexpr std::string_view kBasic = "Basic ";
  const auto given = request.header("authorization");
  if (!net::same_header(given.substr(0, kBasic.size()), kBasic)) co_return Entry::refused;
  const auto decoded = from_base64(given.substr(kBasic.size()));
  const auto colon = decoded ? decoded->find(':') : std::string::npos;
  if (colon == std::string::npos) co_return Entry::refused;
  const auto user = decoded->substr(0, colon);
  const auto password = decoded->substr(colon + 1);
  const auto as_entry = [](bool right) { return right ? Entry::allowed : Entry::refused; };
  if (!passwords_->is_slow(user, password)) co_return as_entry(passwords_->check(user, password));
  const auto waiting = wait_in_line(*passwords_);
  if (!waiting) co_return Entry::busy;
  const bool right = co_await asio::co_spawn(
      slow_, [this, user, password]() -> awaitable<bool> { co_return passwords_->check(user, password); },
      asio::use_awaitable);
  co_return as_entry(right);
}

awaitable<void> HttpDoor::handle(const net::HttpRequest& request, net::HttpResponse& response) {
  const auto path = request.target.substr(0, request.target.find('?'));
  // Whether it is alive is no secret, and asked by those who know no passwords.
  auto entry = Entry::allowed;
  if (passwords_ && path != "/healthz") entry = co_await may_enter(request);
  if (entry == Entry::refused) {
    response.status = 401;
    response.add_header("WWW-Authenticate", "Basic realm=\"Tabella\"");
    co_return;
  }
  // Nobody has looked at the password: it may well be right.
  if (entry == Entry::busy) {
    response.status = 503;
    response.add_header("Retry-After", "1");
    response.content_type = "text/plain; charset=utf-8";
    response.body = "too many passwords are being checked; try again\n";
    co_return;
  }
  if (!guard_.hosts.knows(request.header("host")) && path != "/healthz") {
    response.status = 403;
    response.content_type = "text/plain; charset=utf-8";
    response.body = "this name is not known here; --allow-host makes it so\n";
    co_return;
  }
  const bool known = path == "/metrics" || path == "/healthz";
  if (!known) co_return co_await rest_(request, response);
  response.content_type = "text/plain; charset=utf-8";
  if (request.method != "GET" && request.method != "HEAD") {
    response.status = 405;
    response.add_header("Allow", "GET, HEAD");
    response.body = "use GET\n";
  } else if (path == "/metrics") {
    metrics::Exposition exposition;
    write_metrics_(exposition);
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = exposition.text();
  } else {
    const auto ailment = co_await ailment_();
    response.status = ailment.empty() ? 200 : 503;
    response.body = ailment.empty() ? "ok\n" : ailment + "\n";
  }
}

}  // namespace tabella::app
