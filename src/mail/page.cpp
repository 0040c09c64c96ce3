// A plain page that needs no build step and no script: a list, a search, a message.
#include <fmt/format.h>

#include "mail/api.h"
#include "mail/page_html.h"

namespace tabella::mail {

using boost::asio::awaitable;

namespace {

constexpr size_t kRows = 50;

void answer_page(net::HttpResponse& response, std::string html) {
  response.content_type = "text/html; charset=utf-8";
  response.add_header(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; img-src 'self' data:; "
      "form-action 'self'; base-uri 'none'; frame-ancestors 'none'");
  response.add_header("X-Content-Type-Options", "nosniff");
  response.add_header("Referrer-Policy", "same-origin");
  response.add_header("Cache-Control", "no-store");
  response.body = std::move(html);
}

void go_to(net::HttpResponse& response, const std::string& where) {
  response.status = 303;
  response.add_header("Location", where);
}

}  // namespace

void Api::add_pages(Routes& routes) {
  routes.add({.method = "GET",
              .path = "/",
              .scope = "mail:read",
              .summary = "The page of messages",
              .query = {{"q", "what they must match"}, {"start", "how many to leave out"}},
              .answer = "text/html"},
             &Api::page_list);
  routes.add({.method = "POST",
              .path = "/delete-all",
              .scope = "mail:write",
              .summary = "Deletes all messages, and goes back to the page",
              .answer = "text/html"},
             &Api::page_delete_all);
  routes.add({.method = "GET",
              .path = "/view/{id}",
              .scope = "mail:read",
              .summary = "The page of one message",
              .query = {{"tab", "html, text, source, headers or parts"}},
              .answer = "text/html"},
             &Api::page_message);
  routes.add({.method = "POST",
              .path = "/view/{id}/delete",
              .scope = "mail:write",
              .summary = "Deletes it, and goes back to the page",
              .answer = "text/html"},
             &Api::page_delete);
  routes.add({.method = "POST",
              .path = "/view/{id}/release",
              .scope = "mail:write",
              .summary = "Sends it on to a real server, and goes back to it",
              .body = "email=ann@example.com&host=smtp.example.com&port=25",
              .answer = "text/html",
              .max_body = 64 * 1024},
             &Api::page_release);
}

awaitable<void> Api::page_list(Call& call) {
  const auto query = call.target.get("q");
  const auto start = number_in(call.target, "start", 0);
  const auto& base = web_path_;
  auto html = begin_page(base, query.empty() ? "Messages" : query, query);
  const auto filter = parse_query(query, mail_.clock().now());
  if (!filter) {
    append_notice(html, "That search cannot be read", filter.error());
    co_return answer_page(call.response, std::move(html));
  }
  auto page = co_await mail_.find(*filter, start, kRows, Load::head, deadline_of(call.target));
  if (!page) co_return house::refuse(call, page.error());
  const ListPage list{.query = query,
                      .start = start,
                      .count = page->messages.size() + page->later.size(),
                      .limit = kRows,
                      .total = page->total};
  begin_list(html, base, list);
  const auto show = [&](Message& message) -> store::Async<void> {
    append_row(html, base, message, mail_.now());
    co_return store::Result<void>();
  };
  const auto shown = co_await each_message(*page, show);
  if (!shown) co_return house::refuse(call, shown.error());
  end_list(html, base, list);
  answer_page(call.response, std::move(html));
}

awaitable<void> Api::page_message(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  if (!message->read) co_await mail_.set_read(message->id, true);
  const auto make = [&] { return message_page(web_path_, *message, call.target.get("tab")); };
  answer_page(call.response, co_await mail_.aside(message->size, make));
}

awaitable<void> Api::page_delete(Call& call) {
  const auto removed = co_await mail_.remove(call.path("id"));
  if (!removed) co_return house::refuse(call, removed.error());
  go_to(call.response, web_path_ + "/");
}

awaitable<void> Api::page_delete_all(Call& call) {
  const auto removed = co_await mail_.remove_all();
  if (!removed) co_return house::refuse(call, removed.error());
  go_to(call.response, web_path_ + "/");
}

awaitable<void> Api::page_release(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  const auto form = net::parse_form(call.request.body);
  const auto field = [&](std::string_view name) {
    const auto found = form.find(name);
    return found == form.end() ? std::string() : found->second;
  };
  OutgoingServer how{.email = field("email"), .host = field("host"), .port = field("port")};
  const auto released = co_await release_.release(*message, std::move(how));
  if (!released) {
    auto html = begin_page(web_path_, "Not released", "");
    append_notice(html, "It was not released", released.error().message);
    answer_page(call.response, std::move(html));
    call.response.status = released.error().status;
    co_return;
  }
  go_to(call.response, message_path(web_path_, message->id));
}

}  // namespace tabella::mail
