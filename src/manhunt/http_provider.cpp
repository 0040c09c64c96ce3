#include "manhunt/http_provider.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/json.h"
#include "base/text.h"
#include "base/xml.h"
#include "manhunt/http_outcome.h"
#include "net/target.h"

namespace tabella::manhunt {

using boost::asio::awaitable;
using handlebars::Template;

namespace {

constexpr size_t kMostRequest = 64 * 1024;
constexpr size_t kMostAnswer = 256 * 1024;
constexpr size_t kMostReplyText = 2'000;

std::string escaped(std::string_view text, Escape escape) {
  std::string out;
  switch (escape) {
    case Escape::none: return printable(text);
    case Escape::json: append_json_text(out, text); return out;
    case Escape::form: return net::percent_encode(text);
    case Escape::xml: return xml_text(text);
  }
  std::unreachable();
}

// A form as an object, so that templates read both.
std::string json_of_form(std::string_view form) {
  std::string json;
  JsonObjectWriter object(json);
  for (const auto& [name, value] : net::parse_form(form))
    object.string(to_valid_utf8(name), to_valid_utf8(value));
  return json;
}

}  // namespace

bool HttpProvider::serves(ChannelKind kind) const {
  return std::ranges::find(settings_.channels, kind) != settings_.channels.end();
}

awaitable<Sent> HttpProvider::send(const Message& message) {
  auto request = request_for(message);
  if (!request)
    co_return Sent{.outcome = Outcome::failed, .detail = "the message does not fit the provider's templates"};
  const auto reply = co_await outbound_.send(std::move(*request));
  auto sent = sent_by_http(reply);
  if (sent.outcome == Outcome::sent) read_answer(sent, reply->body);
  co_return sent;
}

void HttpProvider::read_answer(Sent& sent, std::string_view body) const {
  constexpr size_t kMostRead = 300;
  JsonDocument document;
  const auto json = document.parse(body);
  if (!json || !json->is_object()) return;
  const auto read = [&](const std::optional<Template>& part) {
    const auto text = part ? part->render(*json, kMostRead) : invalid("");
    return text ? printable(*text) : std::string();
  };
  sent.reference = read(settings_.reference);
  if (auto error = read(settings_.error); !trim(error).empty()) {
    sent.outcome = Outcome::failed;
    sent.detail = std::move(error);
  }
}

std::string HttpProvider::answer_url(const Message& message) const {
  if (message.attempt.empty()) return {};
  return fmt::format("{}/manhunt/callbacks/{}/call?search={}&attempt={}", base_, settings_.name,
                     message.search, message.attempt);
}

std::optional<net::OutboundRequest> HttpProvider::request_for(const Message& message) const {
  auto url = rendered(settings_.url, message, Escape::form);
  if (!url) return std::nullopt;
  net::OutboundRequest request{.method = settings_.method,
                               .url = std::move(*url),
                               .timeout = settings_.timeout,
                               .max_body = kMostAnswer,
                               .trusted = true};
  bool has_key = false;
  for (const auto& [name, value] : settings_.headers) {
    auto text = rendered(value, message, Escape::none);
    if (!text) return std::nullopt;
    has_key |= net::same_header(name, "idempotency-key");
    request.headers.emplace_back(name, std::move(*text));
  }
  if (!has_key) request.headers.emplace_back("Idempotency-Key", message.id);
  if (settings_.body) {
    auto body = rendered(*settings_.body, message, settings_.escape);
    if (!body) return std::nullopt;
    request.body = std::move(*body);
  }
  return request;
}

std::optional<std::string> HttpProvider::rendered(const Template& text, const Message& message,
                                                  Escape escape) const {
  const auto answers = answer_url(message);
  std::string json;
  {
    JsonObjectWriter data(json);
    for (const auto& [name, value] : {std::pair<const char*, const std::string&>{"id", message.id},
                                      {"destination", message.destination},
                                      {"text", message.text},
                                      {"subject", message.subject},
                                      {"language", message.language},
                                      {"link", message.link},
                                      {"domain", message.domain},
                                      {"search", message.search},
                                      {"attempt", message.attempt},
                                      {"contact", message.contact_name},
                                      {"answer_url", answers},
                                      {"secret", settings_.secret}})
      data.string(name, escaped(to_valid_utf8(value), escape));
    data.string("channel", name_of(message.kind));
  }
  JsonDocument document;
  const auto data = document.parse(json);
  if (!data) return std::nullopt;
  auto written = text.render_with_gaps(*data, kMostRequest);
  if (!written.problem.empty()) return std::nullopt;
  return std::move(written.text);
}

std::expected<HttpProvider::Reply, HttpProvider::Refused> HttpProvider::read_reply(
    ChannelKind kind, const net::HttpRequest& request, std::string_view key) const {
  if (!settings_.replies)
    return std::unexpected(Refused{404, "this provider is not set to hand on answers (replies)"});
  const auto& replies = *settings_.replies;
  constexpr std::string_view kBearer = "Bearer ";
  auto given = request.header("authorization");
  if (given.starts_with(kBearer))
    given.remove_prefix(kBearer.size());
  else
    given = key;
  if (!equal_in_constant_time(replies.key, given))
    return std::unexpected(
        Refused{403, "expected the key of the provider's replies, as a bearer token or as ?key="});
  const bool is_form = request.header("content-type").starts_with("application/x-www-form-urlencoded");
  const auto json = is_form ? json_of_form(request.body) : std::string(request.body);
  JsonDocument document;
  const auto parsed = document.parse(json);
  if (!parsed || !parsed->is_object())
    return std::unexpected(Refused{400, "expected a JSON object or a form"});
  // A call's address says whose it is.
  auto from =
      kind == ChannelKind::phone ? Checked<std::string>("") : replies.from.render(*parsed, kMostReplyText);
  auto text = replies.text.render(*parsed, kMostReplyText);
  if (!from || !text) return std::unexpected(Refused{400, (from ? text.error() : from.error()).message});
  return Reply{.from = std::string(trim(*from)), .text = std::move(*text)};
}

}  // namespace tabella::manhunt
