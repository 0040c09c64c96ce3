#include "access/routes.h"

#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"
#include "net/target.h"

namespace tabella::access {

using boost::asio::awaitable;
using net::Call;

namespace {

constexpr std::string_view kForm = "application/x-www-form-urlencoded";
constexpr std::string_view kExample = R"({"user": "ann", "password": "…"})";
constexpr size_t kMaxBody = 16 * 1024;

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--mark:#2563eb}
*{box-sizing:border-box}body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:22rem;padding:15vh 1rem 1rem}
h1{font-size:1.25rem;margin:0 0 1rem}label{display:block;margin-bottom:.75rem}
input,button{font:inherit;width:100%;padding:.5rem .7rem;border:1px solid var(--line);border-radius:.4rem;background:var(--soft);color:inherit}
button{cursor:pointer;background:var(--mark);border-color:var(--mark);color:#fff}
[role=alert]{border-left:3px solid #dc2626;padding-left:.6rem}
)";

// What the three handlers share.
struct Login {
  std::optional<Users> users;
  LoginOptions options;
};

bool sends_form(const Call& call) {
  const auto type = call.request.header("content-type");
  return net::same_header(trim(type.substr(0, type.find(';'))), kForm);
}

void go_to(Call& call, int status, std::string_view where) {
  call.response.status = status;
  call.response.add_header("Location", where);
}

void answer_page(Call& call, const Login& login, int status, std::string_view problem) {
  auto& response = call.response;
  response.status = status;
  response.content_type = "text/html; charset=utf-8";
  response.add_header("Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
                      "frame-ancestors 'none'");
  response.add_header("X-Content-Type-Options", "nosniff");
  response.add_header("Referrer-Policy", "same-origin");
  response.add_header("Cache-Control", "no-store");
  response.body = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>Log in · Tabella</title><style>{}</style>"
      "<main><h1>Tabella</h1>{}<form method=\"post\" action=\"{}/login?next={}\">"
      "<label>Name <input name=\"user\" autocomplete=\"username\" required autofocus></label>"
      "<label>Password <input name=\"password\" type=\"password\" autocomplete=\"current-password\" "
      "required></label><button>Log in</button></form></main>",
      kStyle, problem.empty() ? "" : fmt::format("<p role=\"alert\">{}</p>", problem), login.options.web_path,
      net::percent_encode(page_after_login(call.text("next"), login.options.web_path)));
}

void refuse(Call& call, const Login& login, int status, std::string_view problem) {
  if (status == 503) call.response.add_header("Retry-After", "1");
  if (sends_form(call))
    answer_page(call, login, status, problem);
  else
    call.refuse(status, problem);
}

// Nothing: that was answered.
std::optional<UserAndPassword> read(Call& call) {
  if (sends_form(call)) {
    auto form = net::parse_form(call.request.body);
    return UserAndPassword{.user = std::move(form["user"]), .password = std::move(form["password"])};
  }
  auto body = call.json(kExample);
  if (!body) return std::nullopt;
  UserAndPassword given{.user = body->text("user"), .password = body->text("password")};
  body->no_others();
  if (call.answered()) return std::nullopt;
  return given;
}

bool nobody_logs_in(Call& call, const Login& login) {
  if (login.users) return false;
  call.refuse(404, "there are no users here: nobody needs to log in; --auth-file names a file of them");
  return true;
}

// Behind a proxy the connection to us is plain, and that of the browser is not.
bool is_encrypted(const Call& call, const Login& login) {
  return login.options.tls || net::same_header(call.request.header("x-forwarded-proto"), "https");
}

void set_cookie(Call& call, const Login& login, std::string_view content) {
  call.response.add_header("Set-Cookie",
                           set_session_cookie(content, login.options.web_path, is_encrypted(call, login)));
}

awaitable<void> log_in(Call& call, const Login& login) {
  if (nobody_logs_in(call, login)) co_return;
  const auto given = read(call);
  if (!given) co_return;
  const auto verdict = co_await login.users->passwords.check(given->user, given->password);
  if (verdict == Verdict::busy)
    co_return refuse(call, login, 503, "too many passwords are being checked; try again");
  if (verdict == Verdict::wrong) co_return refuse(call, login, 401, "the name or the password is wrong");
  const auto cookie = co_await login.users->sessions.begin(given->user);
  if (!cookie) {
    log::warning("a session could not be kept: {}", cookie.error().message);
    co_return refuse(call, login, 503, "the store does not answer; try again");
  }
  set_cookie(call, login, *cookie);
  if (sends_form(call))
    go_to(call, 303, page_after_login(call.text("next"), login.options.web_path));
  else
    call.response.status = 204;
}

awaitable<void> log_out(Call& call, const Login& login) {
  const auto cookie = session_cookie(call.request);
  if (login.users && !cookie.empty()) {
    const auto ended = co_await login.users->sessions.end(cookie);
    if (!ended) {
      log::warning("a session could not be ended: {}", ended.error().message);
      co_return refuse(call, login, 503, "the store does not answer; try again");
    }
  }
  set_cookie(call, login, "");
  if (sends_form(call))
    go_to(call, 303, login.options.web_path + "/login");
  else
    call.response.status = 204;
}

}  // namespace

std::string page_after_login(const std::string& next, const std::string& web_path) {
  // "//host" and "/\host" are other hosts.
  const bool is_ours = next.starts_with(web_path + "/") && is_plain(next) &&
                       next.find('\\') == std::string::npos && !next.starts_with("//");
  return is_ours ? next : web_path + "/";
}

void add_routes(net::Router& router, std::optional<Users> users, LoginOptions options) {
  const auto login = std::make_shared<const Login>(Login{users, std::move(options)});
  const net::Parameter next{"next", "the path to go to afterwards"};
  router.add({.method = "GET",
              .path = "/login",
              .scope = std::string(net::kAnybody),
              .summary = "A page to log in with",
              .handler = [login](Call& call) -> awaitable<void> {
                if (!nobody_logs_in(call, *login)) answer_page(call, *login, 200, "");
                co_return;
              },
              .query = {next},
              .answer = "text/html"});
  router.add({.method = "POST",
              .path = "/login",
              .scope = std::string(net::kAnybody),
              .summary = "Begins a session, whose cookie is set; takes a form as well",
              .handler = [login](Call& call) { return log_in(call, *login); },
              .query = {next},
              .body = std::string(kExample),
              .max_body = kMaxBody});
  router.add({.method = "POST",
              .path = "/logout",
              .scope = std::string(net::kAnybody),
              .summary = "Ends the session",
              .handler = [login](Call& call) { return log_out(call, *login); },
              .max_body = kMaxBody});
}

}  // namespace tabella::access
