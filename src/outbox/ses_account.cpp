// The account, and configuration sets.
#include <fmt/format.h>

#include "outbox/ses.h"

namespace tabella::outbox {

namespace {

constexpr size_t kMostSetsListed = 1000;

void append_suppressed_reasons(std::string& out) { out += R"({"SuppressedReasons":["BOUNCE","COMPLAINT"]})"; }

}  // namespace

void SesApi::add_account_routes(Routes& routes) {
  routes.add({.method = "GET",
              .path = "/v2/email/account",
              .scope = "outbox:read",
              .summary = "SES: GetAccount",
              .at_root = true},
             &SesApi::run<&SesApi::get_account>);
  routes.add({.method = "POST",
              .path = "/v2/email/configuration-sets",
              .scope = "outbox:write",
              .summary = "SES: CreateConfigurationSet",
              .body = R"({"ConfigurationSetName": "news"})",
              .at_root = true},
             &SesApi::run<&SesApi::create_configuration_set>);
  routes.add({.method = "GET",
              .path = "/v2/email/configuration-sets",
              .scope = "outbox:read",
              .summary = "SES: ListConfigurationSets",
              .query = {{"PageSize", "how many at most, up to 1000"}, {"NextToken", "of the page before"}},
              .at_root = true},
             &SesApi::run<&SesApi::list_configuration_sets>);
  routes.add({.method = "GET",
              .path = "/v2/email/configuration-sets/{ConfigurationSetName}",
              .scope = "outbox:read",
              .summary = "SES: GetConfigurationSet",
              .at_root = true},
             &SesApi::run<&SesApi::get_configuration_set>);
  routes.add({.method = "DELETE",
              .path = "/v2/email/configuration-sets/{ConfigurationSetName}",
              .scope = "outbox:write",
              .summary = "SES: DeleteConfigurationSet",
              .at_root = true},
             &SesApi::run<&SesApi::delete_configuration_set>);
}

// How many were sent within a day is not counted, and so not said.
SesApi::Answer SesApi::get_account(Call&) {
  TABELLA_CO_ASSIGN(const auto pauses, co_await outbox_.pauses().lately());
  const auto all = pauses.find("*");
  const bool sending = all == pauses.end() || all->second.resuming;
  std::string json;
  {
    JsonObjectWriter answer(json);
    answer.boolean("DedicatedIpAutoWarmupEnabled", false);
    answer.string("EnforcementStatus", "HEALTHY");
    answer.boolean("ProductionAccessEnabled", true);
    answer.boolean("SendingEnabled", sending);
    answer.key("SendQuota") += R"({"Max24HourSend":-1,"MaxSendRate":-1})";
    append_suppressed_reasons(answer.key("SuppressionAttributes"));
  }
  co_return json;
}

SesApi::Answer SesApi::create_configuration_set(Call& call) {
  TABELLA_CO_ASSIGN(const auto set, co_await read(call, &parse_create_configuration_set));
  TABELLA_CO_ASSIGN(const bool created, co_await sets_.create(set.name));
  if (!created) co_return ses_already_exists(fmt::format("Configuration set {} already exists.", set.name));
  co_return "{}";
}

SesApi::Answer SesApi::get_configuration_set(Call& call) {
  const auto& name = call.path("ConfigurationSetName");
  TABELLA_CO_TRY(check_ses_name("ConfigurationSetName", name));
  TABELLA_CO_ASSIGN(const bool there, co_await sets_.exists(name));
  if (!there) co_return ses_no_configuration_set(name);
  std::string json;
  {
    JsonObjectWriter answer(json);
    answer.string("ConfigurationSetName", name);
    answer.key("SendingOptions") += R"({"SendingEnabled":true})";
    answer.key("ReputationOptions") += R"({"ReputationMetricsEnabled":false})";
    append_suppressed_reasons(answer.key("SuppressionOptions"));
  }
  co_return json;
}

SesApi::Answer SesApi::delete_configuration_set(Call& call) {
  const auto& name = call.path("ConfigurationSetName");
  TABELLA_CO_TRY(check_ses_name("ConfigurationSetName", name));
  TABELLA_CO_ASSIGN(const bool there, co_await sets_.remove(name));
  if (!there) co_return ses_no_configuration_set(name);
  co_return "{}";
}

SesApi::Answer SesApi::list_configuration_sets(Call& call) {
  TABELLA_CO_ASSIGN(const auto limit, page_size(call, kMostSetsListed));
  TABELLA_CO_ASSIGN(const auto page, co_await sets_.list(limit, call.text("NextToken")));
  std::string json;
  {
    JsonObjectWriter answer(json);
    {
      JsonArrayWriter list(answer.key("ConfigurationSets"));
      for (const auto& name : page.names) append_json_string(list.element(), name);
    }
    if (!page.next.empty()) answer.string("NextToken", page.next);
  }
  co_return json;
}

}  // namespace tabella::outbox
