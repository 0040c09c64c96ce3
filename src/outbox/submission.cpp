#include "outbox/submission.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "base/time_text.h"
#include "net/url.h"

namespace tabella::outbox {

using boost::asio::awaitable;
using smtp::Credentials;
using smtp::Envelope;
using smtp::Reply;

namespace {

constexpr std::string_view kOurHeaders = "x-outbox-";

// How long the field at the front is, with the lines that continue it; 0: the headers end here.
size_t field_length(std::string_view text) {
  const auto line_end = [text](size_t from) { return std::min(text.find('\n', from), text.size() - 1) + 1; };
  if (text.empty() || text[0] == '\r' || text[0] == '\n') return 0;
  auto length = line_end(0);
  while (length < text.size() && (text[length] == ' ' || text[length] == '\t')) length = line_end(length);
  return length;
}

Checked<> read_submission_header(std::string_view name, std::string_view value, SubmissionHeaders& into) {
  if (name == "x-outbox-send-at") {
    into.send_at = parse_time(value);
    if (!into.send_at) return invalid("X-Outbox-Send-At: expected a moment, as in 2026-11-18T09:30:00Z");
  } else if (name == "x-outbox-priority") {
    const auto priority = priority_named(lower(value));
    if (!priority) return invalid("X-Outbox-Priority: expected high, normal or low");
    into.priority = *priority;
  } else if (name == "x-outbox-callback") {
    if (!net::parse_url(value)) return invalid("X-Outbox-Callback: expected a URL of http or https");
    into.callback = value;
  } else {
    return invalid("a header that begins with X-Outbox- is not known here");
  }
  return {};
}

Reply refused(std::string_view why) { return {.code = 554, .text = fmt::format("5.6.0 {}", why)}; }

}  // namespace

Checked<SubmissionHeaders> take_submission_headers(std::string& message) {
  SubmissionHeaders headers;
  std::set<std::string> taken;
  std::string kept;
  std::string_view rest = message;
  while (const auto length = field_length(rest)) {
    const auto field = rest.substr(0, length);
    const auto colon = field.find(':');
    if (colon == std::string_view::npos) break;  // the body begins without an empty line
    rest.remove_prefix(length);
    const auto name = lower(trim(field.substr(0, colon)));
    if (!name.starts_with(kOurHeaders)) {
      kept += field;
      continue;
    }
    auto value = field.substr(colon + 1);
    while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
    while (!value.empty() && is_space(value.front())) value.remove_prefix(1);
    TABELLA_TRY(read_submission_header(name, value, headers));
    if (!taken.insert(name).second) return invalid("a header that begins with X-Outbox- is there twice");
  }
  message.replace(0, message.size() - rest.size(), kept);
  return headers;
}

class SubmissionHost::Session final : public smtp::Host {
 public:
  explicit Session(SubmissionHost& host) : host_(host) {}

  std::optional<Reply> refuse_recipient(const Envelope&, const std::string& address) override {
    if (address.contains('@')) return {};
    return Reply{.code = 550, .text = "5.1.3 the address needs a domain, as in ann@example.com"};
  }

  awaitable<Verdict> may_log_in(Credentials credentials) override {
    if (!host_.check_) co_return Verdict::right;
    co_return co_await host_.check_->check(credentials.user, credentials.password);
  }

  awaitable<Reply> take(Envelope envelope) override {
    try {
      co_return co_await host_.take(std::move(envelope));
    } catch (const std::exception& error) {
      log::error("an email could not be accepted: {}", error.what());
    }
    co_return Reply{.code = 451, .text = "4.3.0 the email could not be kept; try again later"};
  }

 private:
  SubmissionHost& host_;
};

awaitable<Reply> SubmissionHost::take(Envelope envelope) {
  auto headers = take_submission_headers(envelope.data);
  if (!headers) co_return refused(headers.error().message);
  if (!headers->callback.empty())
    if (const auto url = outbound_.check(headers->callback); !url)
      co_return refused("X-Outbox-Callback: " + url.error().message);
  const auto id = make_uuid();
  auto composed = co_await composer_.complete(id, std::move(envelope.data));
  if (!composed) co_return refused(composed.error().message);
  const auto accepted = co_await outbox_.accept({.id = id,
                                                 .door = "submission",
                                                 .from = std::move(envelope.from),
                                                 .recipients = std::move(envelope.to),
                                                 .content = std::move(composed->content),
                                                 .subject = std::move(composed->subject),
                                                 .message_id = std::move(composed->message_id),
                                                 .priority = headers->priority,
                                                 .send_at = headers->send_at,
                                                 .callback = std::move(headers->callback)});
  if (accepted) co_return Reply{.code = 250, .text = fmt::format("2.0.0 Accepted as {}", accepted->id)};
  if (accepted.error().code == store::ErrorCode::validation) co_return refused(accepted.error().message);
  log::error("an email could not be accepted: {}", accepted.error().message);
  co_return Reply{.code = 451, .text = "4.3.0 the email could not be kept; try again later"};
}

smtp::Server::Accepted SubmissionHost::invite() {
  return {.host = std::make_unique<Session>(*this), .speed = {}};
}

}  // namespace tabella::outbox
