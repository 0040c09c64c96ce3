// The suppression list.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/text.h"
#include "base/time_text.h"
#include "net/target.h"
#include "outbox/ses.h"

namespace tabella::outbox {

namespace {

constexpr size_t kMostSuppressedListed = 1000;

struct SuppressionFilter {
  std::vector<std::string> reasons;  // none: all
  TimePoint from = TimePoint::min();
  TimePoint until = TimePoint::max();

  bool takes(const Suppressed& one) const {
    return one.at >= from && one.at <= until &&
           (reasons.empty() || std::ranges::find(reasons, one.reason) != reasons.end());
  }
};

// All of a name, where a Target knows the first: ?Reason=BOUNCE&Reason=COMPLAINT.
std::vector<std::string> all_in_query(std::string_view target, std::string_view name) {
  std::vector<std::string> values;
  const auto question = target.find('?');
  if (question == std::string_view::npos) return values;
  for (const auto part : split(target.substr(question + 1), '&')) {
    const auto equals = std::min(part.find('='), part.size());
    if (part.substr(0, equals) != name || equals == part.size()) continue;
    if (auto value = net::percent_decode(part.substr(equals + 1), true)) values.push_back(std::move(*value));
  }
  return values;
}

Checked<SuppressionFilter> read_filter(const net::Call& call) {
  SuppressionFilter filter{.reasons = all_in_query(call.request.target, "Reason")};
  for (const auto& [name, into] : {std::pair{"StartDate", &filter.from}, {"EndDate", &filter.until}}) {
    if (!call.target.has(name)) continue;
    const auto time = parse_time(call.target.get(name));
    if (!time) return invalid(fmt::format("{} must be a moment, as in 2026-11-18T09:30:00Z.", name));
    *into = *time;
  }
  return filter;
}

void write_summary(JsonObjectWriter& out, const Suppressed& one) {
  out.string("EmailAddress", one.address);
  out.string("Reason", one.reason);
  out.number("LastUpdateTime", epoch_seconds(one.at));
}

std::unexpected<SesError> not_suppressed(const std::string& address) {
  return ses_not_found(fmt::format("Email address {} does not exist on your suppression list.", address));
}

}  // namespace

void SesApi::add_suppression_routes(Routes& routes) {
  routes.add({.method = "PUT",
              .path = "/v2/email/suppression/addresses",
              .scope = "outbox:write",
              .summary = "SES: PutSuppressedDestination",
              .body = R"({"EmailAddress": "b@example.com", "Reason": "BOUNCE"})",
              .at_root = true},
             &SesApi::run<&SesApi::put_suppressed_destination>);
  routes.add({.method = "GET",
              .path = "/v2/email/suppression/addresses",
              .scope = "outbox:read",
              .summary = "SES: ListSuppressedDestinations",
              .query = {{"Reason", "BOUNCE or COMPLAINT; may be there twice"},
                        {"StartDate", "not before"},
                        {"EndDate", "not after"},
                        {"PageSize", "how many at most, up to 1000"},
                        {"NextToken", "of the page before"}},
              .at_root = true},
             &SesApi::run<&SesApi::list_suppressed_destinations>);
  routes.add({.method = "GET",
              .path = "/v2/email/suppression/addresses/{EmailAddress}",
              .scope = "outbox:read",
              .summary = "SES: GetSuppressedDestination",
              .at_root = true},
             &SesApi::run<&SesApi::get_suppressed_destination>);
  routes.add({.method = "DELETE",
              .path = "/v2/email/suppression/addresses/{EmailAddress}",
              .scope = "outbox:write",
              .summary = "SES: DeleteSuppressedDestination",
              .at_root = true},
             &SesApi::run<&SesApi::delete_suppressed_destination>);
}

SesApi::Answer SesApi::put_suppressed_destination(Call& call) {
  TABELLA_CO_ASSIGN(auto suppressed, co_await read(call, &parse_put_suppressed_destination));
  TABELLA_CO_TRY(co_await outbox_.suppressions().add(std::move(suppressed)));
  co_return "{}";
}

SesApi::Answer SesApi::get_suppressed_destination(Call& call) {
  const auto& address = call.path("EmailAddress");
  TABELLA_CO_TRY(parse_ses_address("EmailAddress", address));
  TABELLA_CO_ASSIGN(const auto found, co_await outbox_.suppressions().find(address));
  if (!found) co_return not_suppressed(address);
  std::string json;
  {
    JsonObjectWriter answer(json);
    JsonObjectWriter destination(answer.key("SuppressedDestination"));
    write_summary(destination, *found);
    if (!found->email.empty()) {
      JsonObjectWriter attributes(destination.key("Attributes"));
      attributes.string("MessageId", found->email);
    }
  }
  co_return json;
}

SesApi::Answer SesApi::delete_suppressed_destination(Call& call) {
  const auto& address = call.path("EmailAddress");
  TABELLA_CO_TRY(parse_ses_address("EmailAddress", address));
  TABELLA_CO_ASSIGN(const bool there, co_await outbox_.suppressions().remove(address));
  if (!there) co_return not_suppressed(address);
  co_return "{}";
}

// What the filter leaves out may take long to pass over: after a while the page is answered as it is.
SesApi::Answer SesApi::list_suppressed_destinations(Call& call) {
  constexpr std::chrono::milliseconds kLongest{50};
  const auto until = std::chrono::steady_clock::now() + kLongest;
  TABELLA_CO_ASSIGN(const auto limit, page_size(call, kMostSuppressedListed));
  TABELLA_CO_ASSIGN(const auto filter, read_filter(call));
  std::vector<Suppressed> found;
  auto next = call.text("NextToken");
  do {
    auto page = co_await outbox_.suppressions().list(limit - found.size(), next);
    if (!page && page.error().code == store::ErrorCode::validation)
      co_return std::unexpected(SesError("InvalidNextTokenException", 400, page.error().message));
    if (!page) co_return std::unexpected(page.error());
    std::ranges::copy_if(page->addresses, std::back_inserter(found),
                         [&](const Suppressed& one) { return filter.takes(one); });
    next = std::move(page->next);
  } while (!next.empty() && found.size() < limit && std::chrono::steady_clock::now() < until);
  std::string json;
  {
    JsonObjectWriter answer(json);
    {
      JsonArrayWriter list(answer.key("SuppressedDestinationSummaries"));
      for (const auto& one : found) {
        JsonObjectWriter summary(list.element());
        write_summary(summary, one);
      }
    }
    if (!next.empty()) answer.string("NextToken", next);
  }
  co_return json;
}

}  // namespace tabella::outbox
