#include "manhunt/twilio.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/checksum.h"
#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/xml.h"
#include "manhunt/http_outcome.h"
#include "manhunt/wording.h"
#include "net/target.h"

namespace tabella::manhunt {

using boost::asio::awaitable;

namespace {

// What Twilio documents that it takes.
constexpr size_t kMostSpoken = 3'000;  // of a document of 4,000 characters
constexpr size_t kMostTextBody = 1'600;

std::string form_of(std::initializer_list<std::pair<std::string_view, std::string>> fields) {
  std::string form;
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    if (!form.empty()) form.push_back('&');
    form.append(name).append("=").append(net::percent_encode(value));
  }
  return form;
}

std::string cut(std::string_view text, size_t most) {
  constexpr std::string_view kMore = "…";
  if (text.size() <= most) return std::string(text);
  return std::string(utf8_front(text, most - kMore.size())).append(kMore);
}

// What it documents that it speaks; of a language's several, first the one for whoever names none.
constexpr std::string_view kSpoken[] = {"en-US", "en-AU", "en-CA", "en-GB", "en-IN", "ca-ES", "da-DK",
                                        "de-DE", "es-ES", "es-MX", "fi-FI", "fr-FR", "fr-CA", "it-IT",
                                        "ja-JP", "ko-KR", "nb-NO", "nl-NL", "pl-PL", "pt-PT", "pt-BR",
                                        "ru-RU", "sv-SE", "zh-CN", "zh-HK", "zh-TW"};

std::string_view spoken_language(std::string_view language) {
  const auto wanted = lower(language);
  const auto* found = std::ranges::find(kSpoken, wanted, [](auto each) { return lower(each); });
  if (found == std::end(kSpoken)) found = std::ranges::find(kSpoken, base_language(wanted), base_language);
  return found == std::end(kSpoken) ? kSpoken[0] : *found;
}

std::string say_tag(std::string_view text, std::string_view language) {
  return fmt::format("<Say language=\"{}\">{}</Say>", spoken_language(language), xml_text(text));
}

// Names and values of a form as they are signed: by their names, and each value of a name once.
std::string signed_fields(std::string_view form) {
  std::set<std::pair<std::string, std::string>> fields;
  for (const auto pair : split(form, '&')) {
    const auto equals = std::min(pair.find('='), pair.size());
    auto name = net::percent_decode(pair.substr(0, equals), true);
    auto value = net::percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (name && value && !pair.empty()) fields.emplace(std::move(*name), std::move(*value));
  }
  std::string text;
  for (const auto& [name, value] : fields) text.append(name).append(value);
  return text;
}

// Twilio signs some addresses with their port and some without: its own libraries take both.
std::vector<std::string> spellings_of(const std::string& base) {
  const auto url = net::parse_url(base);
  if (!url) return {base};
  const auto path = url->path == "/" ? std::string() : url->path;
  const auto* scheme = url->tls ? "https" : "http";
  return {base, fmt::format("{}://{}{}", scheme, url->host, path),
          fmt::format("{}://{}:{}{}", scheme, url->host, url->port, path)};
}

}  // namespace

std::string call_twiml(const Message& message, std::string_view action) {
  // Escaped, it is longer.
  auto text = cut(message.text, kMostSpoken);
  while (xml_text(text).size() > kMostSpoken) text = cut(text, text.size() * 3 / 4);
  const auto said = say_tag(text, message.language);
  if (message.search.empty()) return fmt::format("<Response>{}</Response>", said);
  const auto& words = phrases(message.language);
  const auto ours = language_of_words(message.language);
  return fmt::format(
      "<Response><Gather input=\"dtmf\" numDigits=\"1\" timeout=\"10\" method=\"POST\" "
      "action=\"{}\">{}{}</Gather>{}"
      "</Response>",
      xml_text(action), said, say_tag(words.press, ours), say_tag(words.no_answer, ours));
}

std::string say_twiml(std::string_view text, std::string_view language) {
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response>{}</Response>",
                     say_tag(text, language));
}

// A message without a text would be an error.
std::string reply_twiml(std::string_view text) {
  const auto message = text.empty() ? "" : fmt::format("<Message>{}</Message>", xml_text(text));
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response>{}</Response>", message);
}

bool Twilio::serves(ChannelKind kind) const {
  return std::ranges::find(account_.channels, kind) != account_.channels.end();
}

std::string Twilio::callback(std::string_view what, const Message& message) const {
  if (message.search.empty()) return {};
  return fmt::format("{}/manhunt/callbacks/{}/{}?search={}&attempt={}", base_, account_.name, what,
                     net::percent_encode(message.search), net::percent_encode(message.attempt));
}

awaitable<Sent> Twilio::send(const Message& message) {
  const bool call = message.kind == ChannelKind::phone;
  const auto status = callback("status", message);
  auto form = call ? form_of({{"To", message.destination},
                              {"From", account_.from},
                              {"Twiml", call_twiml(message, callback("call", message))},
                              {"Timeout", "45"},
                              {"StatusCallback", status},
                              {"StatusCallbackMethod", status.empty() ? "" : "POST"}})
                   : form_of({{"To", message.destination},
                              {"From", account_.from},
                              {"Body", cut(message.text, kMostTextBody)},
                              {"StatusCallback", status}});
  if (call && !status.empty())
    for (const auto* event : {"initiated", "ringing", "answered", "completed"})
      form.append("&StatusCallbackEvent=").append(event);
  const auto reply = co_await outbound_.send(
      {.method = "POST",
       .url = fmt::format("{}/2010-04-01/Accounts/{}/{}.json", account_.url, account_.account,
                          call ? "Calls" : "Messages"),
       .headers = {{"Content-Type", "application/x-www-form-urlencoded"},
                   {"Authorization", "Basic " + to_base64(account_.account + ":" + account_.token)},
                   {"Idempotency-Key", message.id}},
       .body = std::move(form),
       .timeout = account_.timeout,
       .trusted = true});
  auto sent = sent_by_http(reply);
  if (sent.outcome != Outcome::sent) co_return sent;
  JsonDocument document;
  if (const auto json = document.parse(reply->body); json && json->is_object())
    sent.reference = json->text("sid");
  co_return sent;
}

// The address as we gave it, and each field's name and value, by their names; HMAC-SHA1 with the account's
// token.
bool Twilio::is_signed(std::string_view target, std::string_view form, std::string_view signature) const {
  const auto fields = signed_fields(form);
  bool found = false;
  for (const auto& base : spellings_of(base_))
    found |= equal_in_constant_time(
        to_base64(hmac_sha1(account_.token, fmt::format("{}{}{}", base, target, fields))), signature);
  return found;
}

}  // namespace tabella::manhunt
