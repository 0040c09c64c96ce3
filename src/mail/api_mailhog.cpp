// MailHog's API, v1 and v2: the same paths, shapes and codes; better where nobody can depend on the
// difference (docs/mail.md has the list).
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "mail/api.h"
#include "mail/mailhog.h"
#include "mail/shown.h"
#include "mime/encodings.h"
#include "mime/fold.h"
#include "net/body_writer.h"

namespace tabella::mail {

using boost::asio::awaitable;

namespace {

constexpr size_t kMailHogPage = 50;
constexpr size_t kLargestMailHogPage = 250;
constexpr size_t kFirstList = 1000;

struct Page {
  size_t start;
  size_t limit;
};
Page page_of(const net::Target& target) {
  return {.start = number_in(target, "start", 0),
          .limit = std::min(number_in(target, "limit", kMailHogPage), kLargestMailHogPage)};
}

// What stands before the messages of v2's lists.
std::string begin_page(const MessagePage& page, size_t start) {
  return fmt::format("{{\"total\":{},\"count\":{},\"start\":{},\"items\":[", page.total,
                     page.messages.size() + page.later.size(), start);
}

// A part as MailHog hands it out.
void show_mailhog_part(net::HttpResponse& response, const Message& message, const std::string& text) {
  size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view raw = message.raw;
  if (raw.ends_with("\r\n")) raw.remove_suffix(2);
  const auto content = parse_content(raw);
  if (!content.parts || number >= content.parts->size())
    return answer_error(response, 404, "the message has no such part");
  const auto& part = (*content.parts)[number];
  std::string encoding;
  std::string disposition =
      fmt::format("attachment; filename=\"{}-part-{}\"", header_text(message.id), header_text(text));
  mime::Parameters type;
  for (const auto& [name, values] : part.headers) {
    if (net::same_header(name, "content-transfer-encoding")) encoding = mime::fold(values.front());
    // Never inline: it would be a page of ours.
    if (net::same_header(name, "content-disposition")) {
      const auto filename = mime::parse_parameters(values.front()).get("filename");
      if (!filename.empty()) disposition = fmt::format("attachment; filename=\"{}\"", header_text(filename));
    }
    if (net::same_header(name, "content-type")) type = mime::parse_parameters(values.front());
  }
  response.add_header("Content-Type", download_type(type.value, type.get("charset")));
  response.add_header("Content-Disposition", disposition);
  add_sandbox(response);
  response.body = mime::decode(part.body, encoding);
}

}  // namespace

void Api::add_mailhog_routes(Routes& routes) {
  routes.add({.method = "GET",
              .path = "/api/v1/messages",
              .scope = "mail:read",
              .summary = "The newest messages, as MailHog shows them",
              .answer = "text/json"},
             &Api::v1_list);
  routes.add({.method = "DELETE",
              .path = "/api/v1/messages",
              .scope = "mail:write",
              .summary = "Deletes all messages",
              .answer = "text/json"},
             &Api::v1_delete_all);
  routes.add({.method = "GET",
              .path = "/api/v1/messages/{id}",
              .scope = "mail:read",
              .summary = "One message, as MailHog shows it",
              .answer = "text/json"},
             &Api::v1_get);
  routes.add({.method = "DELETE",
              .path = "/api/v1/messages/{id}",
              .scope = "mail:write",
              .summary = "Deletes one message",
              .answer = "text/json"},
             &Api::v1_delete);
  routes.add({.method = "GET",
              .path = "/api/v1/messages/{id}/download",
              .scope = "mail:read",
              .summary = "The source of a message",
              .answer = "message/rfc822"},
             &Api::v1_download);
  routes.add({.method = "GET",
              .path = "/api/v1/messages/{id}/mime/part/{part}/download",
              .scope = "mail:read",
              .summary = "A MIME part of a message",
              .answer = "application/octet-stream"},
             &Api::v1_part);
  routes.add({.method = "POST",
              .path = "/api/v1/messages/{id}/release",
              .scope = "mail:write",
              .summary = "Sends a message on to a real server",
              .body = R"({"Host": "smtp.example.com", "Port": "25", "Email": "ann@example.com"})",
              .answer = "text/json"},
             &Api::v1_release);
  routes.add({.method = "GET",
              .path = "/api/v2/messages",
              .scope = "mail:read",
              .summary = "A page of messages, newest first",
              .query = {{"start", "how many to leave out"}, {"limit", "how many, at most 250"}},
              .answer = "text/json"},
             &Api::v2_list);
  routes.add({.method = "GET",
              .path = "/api/v2/search",
              .scope = "mail:read",
              .summary = "Messages that match",
              .query = {{"kind", "from, to or containing"},
                        {"query", "what to look for"},
                        {"start", "how many to leave out"},
                        {"limit", "how many, at most 250"}}},
             &Api::v2_search);
  routes.add({.method = "GET",
              .path = "/api/v2/jim",
              .scope = "mail:read",
              .summary = "The chances of the chaos monkey, if it is there"},
             &Api::v2_jim_get);
  routes.add({.method = "POST",
              .path = "/api/v2/jim",
              .scope = "mail:write",
              .summary = "Lets the chaos monkey in",
              .body = R"({"DisconnectChance": 0.1})"},
             &Api::v2_jim_post);
  routes.add({.method = "PUT",
              .path = "/api/v2/jim",
              .scope = "mail:write",
              .summary = "Changes its chances",
              .body = R"({"DisconnectChance": 0.1})"},
             &Api::v2_jim_put);
  routes.add({.method = "DELETE",
              .path = "/api/v2/jim",
              .scope = "mail:write",
              .summary = "Sends the chaos monkey away"},
             &Api::v2_jim_delete);
  routes.add({.method = "GET",
              .path = "/api/v2/outgoing-smtp",
              .scope = "mail:read",
              .summary = "The servers that messages can be released through"},
             &Api::v2_outgoing);
}

awaitable<void> Api::answer_list(Call& call, List list) {
  constexpr size_t kAtOnce = 1u << 20;
  size_t bytes = 0;
  for (const auto& message : list.page.messages) bytes += message.whole ? message.raw.size() : kAtOnce;
  if (!list.page.later.empty() || bytes >= kAtOnce) {
    size_t held = 0;
    for (const auto& message : list.page.messages) held += message.raw.size();
    if (!call.count_memory(held)) co_return;
    call.response.stream = [this, kept = std::make_shared<List>(std::move(list))](net::BodyWriter& out) {
      return write_list(*kept, out);
    };
    co_return;
  }
  Pace pace;
  auto& body = call.response.body;
  body = std::move(list.before);
  for (bool first = true; const auto& message : list.page.messages) {
    co_await pace.go_on();
    if (!std::exchange(first, false)) body.push_back(',');
    append_message_json(body, message, mail_.options().hostname);
  }
  body.append(list.after);
}

awaitable<bool> Api::write_list(List& list, net::BodyWriter& out) {
  try {
    std::string text = std::move(list.before);
    bool first = true;
    const auto show = [&](Message& message) -> store::Async<void> {
      if (!std::exchange(first, false)) text.push_back(',');
      co_return co_await write_message(message, text, out);
    };
    const auto written = co_await each_message(list.page, show);
    if (!written) log::info("a list of messages ends early: {}", written.error().message);
    if (!written) co_return false;
    text.append(list.after);
    co_return co_await out.send(text);
  } catch (const std::exception& error) {
    log::error("a list of messages ends early: {}", error.what());
    co_return false;
  }
}

store::Async<void> Api::write_message(Message& message, std::string& text, net::BodyWriter& out) {
  constexpr size_t kPiece = 64 * 1024;
  constexpr std::chrono::minutes kPatience{5};  // waiting costs nothing, and those before it may read slowly
  auto room = room_for_one();
  auto completed = co_await complete(message, room, std::chrono::steady_clock::now() + kPatience);
  if (!completed) co_return store::error_of(completed);
  const auto take_apart = [&] { return std::make_shared<MessageJson>(message, mail_.options().hostname); };
  const auto json = co_await mail_.aside(message.raw.size(), take_apart);
  for (bool more = true; more;) {
    more = json->next(text);
    if (text.size() < kPiece) continue;
    if (!co_await out.send(text))
      co_return store::fail(store::ErrorCode::unavailable, "the client has gone, or does not read");
  }
  message.raw = {};
  co_return store::Result<void>();
}

awaitable<void> Api::v1_list(Call& call) {
  auto page = co_await mail_.list(0, kFirstList, Load::head, deadline_of(call.target));
  if (!page) co_return house::refuse(call, page.error());
  call.response.content_type = kTextJson;
  List list{.before = "[", .page = std::move(*page), .after = "]"};
  co_await answer_list(call, std::move(list));
}

awaitable<void> Api::v1_delete_all(Call& call) {
  const auto removed = co_await mail_.remove_all();
  if (!removed) co_return house::refuse(call, removed.error());
  call.response.content_type = kTextJson;
}

awaitable<void> Api::v1_get(Call& call) {
  auto message = co_await load_or_answer(call);
  if (!message) co_return;
  call.response.content_type = kTextJson;
  List list;
  list.page.messages.push_back(std::move(*message));
  co_await answer_list(call, std::move(list));
}

awaitable<void> Api::v1_delete(Call& call) {
  const auto removed = co_await mail_.remove(call.path("id"));
  if (!removed) co_return house::refuse(call, removed.error());
  if (!*removed) co_return call.refuse(404, "there is no such message");
  call.response.content_type = kTextJson;
}

awaitable<void> Api::v1_download(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  call.response.content_type = "message/rfc822";
  call.response.add_header("Content-Disposition",
                           fmt::format("attachment; filename=\"{}.eml\"", header_text(message->id)));
  add_sandbox(call.response);
  call.response.body = trace_headers(*message, mail_.options().hostname) + message->raw;
}

awaitable<void> Api::v1_part(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  co_await mail_.aside(message->size, [&] { show_mailhog_part(call.response, *message, call.path("part")); });
}

awaitable<void> Api::v1_release(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  auto how = outgoing_from_json(call.request.body);
  if (!how)
    co_return call.refuse(
        400, "expected {\"Host\": \"…\", \"Port\": \"25\", \"Email\": \"whom@to.send.to\"}, or a \"Name\"");
  const auto released = co_await release_.release(*message, std::move(*how));
  if (!released) co_return call.refuse(released.error().status, released.error().message);
  call.response.content_type = kTextJson;
}

awaitable<void> Api::v2_list(Call& call) {
  const auto [start, limit] = page_of(call.target);
  auto page = co_await mail_.list(start, limit, Load::head, deadline_of(call.target));
  if (!page) co_return house::refuse(call, page.error());
  call.response.content_type = kTextJson;
  List list{.before = begin_page(*page, start), .page = std::move(*page), .after = "]}"};
  co_await answer_list(call, std::move(list));
}

awaitable<void> Api::v2_search(Call& call) {
  const auto [start, limit] = page_of(call.target);
  const auto query = call.target.get("query");
  const auto filter = mailhog_query(call.target.get("kind"), query);
  if (!filter) co_return call.refuse(400, "kind is from, to or containing");
  if (query.empty()) co_return call.refuse(400, "query is missing");
  auto page = co_await mail_.find(*filter, start, limit, Load::head, deadline_of(call.target));
  if (!page) co_return house::refuse(call, page.error());
  call.response.content_type = kJson;
  List list{.before = begin_page(*page, start), .page = std::move(*page), .after = "]}"};
  co_await answer_list(call, std::move(list));
}

awaitable<void> Api::v2_jim_get(Call& call) {
  const auto chances = jim_.chances();
  if (!chances) {
    call.response.status = 404;
    co_return;
  }
  call.response.content_type = kJson;
  call.response.body = to_json(*chances);
}

awaitable<void> Api::v2_jim_post(Call& call) {
  call.response.status = jim_.invite(chances_from_json(call.request.body)) ? 201 : 400;
  co_return;
}

awaitable<void> Api::v2_jim_put(Call& call) {
  if (!jim_.chances()) {
    call.response.status = 404;
    co_return;
  }
  const auto chances = chances_from_json(call.request.body);
  if (!chances) co_return call.refuse(400, "expected an object of chances, as GET gives it");
  jim_.change(*chances);
}

awaitable<void> Api::v2_jim_delete(Call& call) {
  if (!jim_.send_away()) call.response.status = 404;
  co_return;
}

awaitable<void> Api::v2_outgoing(Call& call) {
  const auto servers = co_await release_.servers();
  if (!servers) co_return house::refuse(call, servers.error());
  call.response.content_type = kJson;
  JsonObjectWriter object(call.response.body);
  for (const auto& [name, server] : *servers) append_outgoing_json(object.key(name), server);
}

}  // namespace tabella::mail
