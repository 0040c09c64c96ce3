#include "outbox/bounces.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/log.h"
#include "base/text.h"

namespace tabella::outbox {

using boost::asio::awaitable;
using smtp::Envelope;
using smtp::Reply;
using store::Async;

namespace {

// Addresses that are on their way have it: do not change.
constexpr std::string_view kBouncePrefix = "bounce+";
constexpr size_t kMacDigits = 16;

using ByAddress = std::map<std::string, const Recipient*>;  // in lower case

const Recipient* recipient_of(const mime::DeliveryStatus& status, const ByAddress& recipients) {
  for (const auto* address : {&status.original_recipient, &status.final_recipient})
    if (const auto found = recipients.find(lower(*address)); found != recipients.end()) return found->second;
  return recipients.size() == 1 ? recipients.begin()->second : nullptr;
}

}  // namespace

BounceAddresses::BounceAddresses(std::string key, std::string domain)
    : key_(std::move(key)), domain_(lower(domain)) {}

std::string BounceAddresses::mac_of(std::string_view id) const {
  return to_hex(hmac_sha256(key_, id)).substr(0, kMacDigits);
}

std::string BounceAddresses::address_of(std::string_view id) const {
  return fmt::format("{}{}.{}@{}", kBouncePrefix, id, mac_of(id), domain_);
}

std::optional<std::string> BounceAddresses::parse(std::string_view address) const {
  const auto at = address.rfind('@');
  if (at == std::string_view::npos || lower(address.substr(at + 1)) != domain_) return std::nullopt;
  auto local = address.substr(0, at);
  if (lower(local.substr(0, kBouncePrefix.size())) != kBouncePrefix) return std::nullopt;
  local.remove_prefix(kBouncePrefix.size());
  const auto dot = local.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto id = local.substr(0, dot);
  const auto mac = lower(local.substr(dot + 1));
  if (!is_email_id(id) || !equal_in_constant_time(mac, mac_of(id))) return std::nullopt;
  return std::string(id);
}

std::vector<Bounce> bounces_in(const std::vector<mime::DeliveryStatus>& report, const std::string& email,
                               const std::vector<Recipient>& recipients) {
  ByAddress by_address;
  for (const auto& recipient : recipients) by_address.emplace(lower(recipient.address), &recipient);
  std::vector<Bounce> bounces;
  std::set<const Recipient*> told;
  for (const auto& status : report) {
    if (status.action != mime::DeliveryStatus::Action::failed) continue;
    const auto* recipient = recipient_of(status, by_address);
    if (!recipient || !told.insert(recipient).second) continue;
    bounces.push_back({.email = email,
                       .recipient = recipient->address,
                       .status = status.status,
                       .diagnostic = status.diagnostic,
                       .permanent = status.status.starts_with("5.")});
  }
  return bounces;
}

class BounceHost::Session final : public smtp::Host {
 public:
  explicit Session(BounceHost& host) : host_(host) {}

  std::optional<Reply> refuse_recipient(const Envelope&, const std::string& address) override {
    if (host_.addresses_.parse(address)) return {};
    return Reply{.code = 550, .text = "5.1.1 there is no such address here"};
  }
  awaitable<Verdict> may_log_in(smtp::Credentials) override { co_return Verdict::wrong; }

  awaitable<Reply> take(Envelope envelope) override {
    try {
      const auto taken = co_await host_.take(envelope);
      if (taken) co_return Reply{.code = 250, .text = "2.0.0 Ok"};
      log::error("a bounce could not be noted: {}", taken.error().message);
    } catch (const std::exception& error) {
      log::error("a bounce could not be noted: {}", error.what());
    }
    co_return Reply{.code = 451, .text = "4.3.0 try again later"};
  }

 private:
  BounceHost& host_;
};

Async<void> BounceHost::take(const Envelope& envelope) {
  const auto report = mime::parse_delivery_report(envelope.data);
  ++(report.empty() ? others_ : reports_);
  if (report.empty()) co_return store::Result<>{};
  std::set<std::string> emails;
  for (const auto& address : envelope.to)
    if (auto id = addresses_.parse(address)) emails.insert(std::move(*id));
  for (const auto& email : emails) TABELLA_CO_TRY(co_await note(report, email));
  co_return store::Result<>{};
}

Async<void> BounceHost::note(const std::vector<mime::DeliveryStatus>& report, const std::string& email) {
  TABELLA_CO_ASSIGN(const auto message, co_await outbox_.find_message(email));
  if (!message) co_return store::Result<>{};  // its time is over
  for (auto& bounce : bounces_in(report, email, message->recipients)) {
    if (bounce.permanent) {
      TABELLA_CO_TRY(co_await outbox_.suppressions().add({.address = bounce.recipient,
                                                          .reason = "BOUNCE",
                                                          .email = email,
                                                          .diagnostic = bounce.diagnostic}));
      ++suppressed_;
    }
    TABELLA_CO_TRY(co_await tell_(std::move(bounce)));
  }
  co_return store::Result<>{};
}

smtp::Server::Accepted BounceHost::invite() {
  return {.host = std::make_unique<Session>(*this), .speed = {}};
}

void BounceHost::write_metrics(metrics::Exposition& out) const {
  constexpr std::string_view kMessages = "tabella_outbox_bounce_messages_total";
  constexpr std::string_view kHelp = "Messages that came to the addresses for bounces";
  out.counter(kMessages, kHelp, static_cast<double>(reports_), {{"kind", "report"}});
  out.counter(kMessages, kHelp, static_cast<double>(others_), {{"kind", "other"}});
  out.counter("tabella_outbox_bounced_addresses_total", "Addresses that bounces put on the suppression list",
              static_cast<double>(suppressed_));
}

}  // namespace tabella::outbox
