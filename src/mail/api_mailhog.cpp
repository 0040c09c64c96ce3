// MailHog's API, v1 and v2: the same paths, shapes and codes; better where nobody can depend on the
// difference (docs/mail.md has the list).
#include <charconv>

#include <fmt/format.h>

#include "item/json.h"
#include "mail/api.h"
#include "mail/mailhog.h"
#include "mime/encodings.h"
#include "mime/fold.h"

namespace tabella::mail {

using boost::asio::awaitable;
using item::JsonArrayWriter;
using item::JsonObjectWriter;

namespace {

constexpr size_t kPage = 50;
constexpr size_t kLargestPage = 250;
constexpr size_t kFirstList = 1000;

void append_messages(std::string& out, const std::vector<Message>& messages, const std::string& hostname) {
  JsonArrayWriter array(out);
  for (const auto& message : messages) append_message_json(array.element(), message, hostname);
}

// What may stand in a header of ours.
std::string header_value(std::string_view text) {
  std::string value(text);
  std::erase_if(value, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"'; });
  return value;
}

struct Page {
  size_t start;
  size_t limit;
};
Page page_of(const net::Target& target) {
  return {.start = number_in(target, "start", 0),
          .limit = std::min(number_in(target, "limit", kPage), kLargestPage)};
}

void answer_page(net::HttpResponse& response, const MessagePage& page, size_t start,
                 const std::string& hostname) {
  JsonObjectWriter object(response.body);
  object.number("total", static_cast<int64_t>(page.total));
  object.number("count", static_cast<int64_t>(page.messages.size()));
  object.number("start", static_cast<int64_t>(start));
  append_messages(object.key("items"), page.messages, hostname);
}

}  // namespace

awaitable<void> Api::v1_list(Call& call) {
  const auto page = co_await mail_.list(0, kFirstList, Load::whole, deadline_of(call.target));
  if (!page) co_return answer_error(call.response, page.error());
  call.response.content_type = kTextJson;
  append_messages(call.response.body, page->messages, mail_.options().hostname);
}

awaitable<void> Api::v1_delete_all(Call& call) {
  const auto removed = co_await mail_.remove_all();
  if (!removed) co_return answer_error(call.response, removed.error());
  call.response.content_type = kTextJson;
}

awaitable<void> Api::v1_get(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  call.response.content_type = kTextJson;
  append_message_json(call.response.body, *message, mail_.options().hostname);
}

awaitable<void> Api::v1_delete(Call& call) {
  const auto removed = co_await mail_.remove(call.captured.front());
  if (!removed) co_return answer_error(call.response, removed.error());
  if (!*removed) co_return answer_error(call.response, 404, "there is no such message");
  call.response.content_type = kTextJson;
}

awaitable<void> Api::v1_download(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  call.response.content_type = "message/rfc822";
  call.response.add_header("Content-Disposition",
                           fmt::format("attachment; filename=\"{}.eml\"", header_value(message->id)));
  add_sandbox(call.response);
  call.response.body = trace_headers(*message, mail_.options().hostname) + message->raw;
}

awaitable<void> Api::v1_part(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  const auto& text = call.captured[1];
  size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view raw = message->raw;
  if (raw.ends_with("\r\n")) raw.remove_suffix(2);
  const auto content = parse_content(raw);
  if (!content.parts || number >= content.parts->size())
    co_return answer_error(call.response, 404, "the message has no such part");
  const auto& part = (*content.parts)[number];
  std::string encoding;
  std::string disposition =
      fmt::format("attachment; filename=\"{}-part-{}\"", header_value(message->id), header_value(text));
  std::string type;
  for (const auto& [name, values] : part.headers) {
    if (net::same_header(name, "content-transfer-encoding")) encoding = mime::fold(values.front());
    // Never inline: it would be a page of ours.
    if (net::same_header(name, "content-disposition")) {
      const auto filename = mime::parse_parameters(values.front()).get("filename");
      if (!filename.empty()) disposition = fmt::format("attachment; filename=\"{}\"", header_value(filename));
    }
    if (net::same_header(name, "content-type"))
      type = header_value(mime::parse_parameters(values.front()).value);
  }
  call.response.add_header("Content-Type", type.empty() ? "application/octet-stream" : type);
  call.response.add_header("Content-Disposition", disposition);
  add_sandbox(call.response);
  call.response.body = mime::decode(part.body, encoding);
}

awaitable<void> Api::v1_release(Call& call) {
  const auto message = co_await load_or_answer(call);
  if (!message) co_return;
  auto how = outgoing_from_json(call.request.body);
  if (!how)
    co_return answer_error(
        call.response, 400,
        "expected {\"Host\": \"…\", \"Port\": \"25\", \"Email\": \"whom@to.send.to\"}, or a \"Name\"");
  const auto released = co_await release_.release(*message, std::move(*how));
  if (!released) co_return answer_error(call.response, released.error().status, released.error().message);
  call.response.content_type = kTextJson;
}

awaitable<void> Api::v2_list(Call& call) {
  const auto [start, limit] = page_of(call.target);
  const auto page = co_await mail_.list(start, limit, Load::whole, deadline_of(call.target));
  if (!page) co_return answer_error(call.response, page.error());
  call.response.content_type = kTextJson;
  answer_page(call.response, *page, start, mail_.options().hostname);
}

awaitable<void> Api::v2_search(Call& call) {
  const auto [start, limit] = page_of(call.target);
  const auto query = call.target.get("query");
  const auto filter = mailhog_query(call.target.get("kind"), query);
  if (!filter) co_return answer_error(call.response, 400, "kind is from, to or containing");
  if (query.empty()) co_return answer_error(call.response, 400, "query is missing");
  const auto page = co_await mail_.find(*filter, start, limit, Load::whole, deadline_of(call.target));
  if (!page) co_return answer_error(call.response, page.error());
  call.response.content_type = kJson;
  answer_page(call.response, *page, start, mail_.options().hostname);
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
  if (!chances) co_return answer_error(call.response, 400, "expected an object of chances, as GET gives it");
  jim_.change(*chances);
}

awaitable<void> Api::v2_jim_delete(Call& call) {
  if (!jim_.send_away()) call.response.status = 404;
  co_return;
}

awaitable<void> Api::v2_outgoing(Call& call) {
  const auto servers = co_await release_.servers();
  if (!servers) co_return answer_error(call.response, servers.error());
  call.response.content_type = kJson;
  JsonObjectWriter object(call.response.body);
  for (const auto& [name, server] : *servers) append_outgoing_json(object.key(name), server);
}

}  // namespace tabella::mail
