#include "manhunt/system.h"

#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "house/house.h"
#include "manhunt/api.h"
#include "manhunt/runner.h"

namespace tabella::manhunt {
namespace {

struct ManhuntOptions {
  std::string table = "tabella-manhunt";
  std::string url;
  std::filesystem::path providers;
  std::string email_from = "manhunt@localhost";
  std::chrono::milliseconds link_ttl = std::chrono::hours{24};
  bool verified_only = false;
};

OptionCheck check_base_url(std::string_view text) {
  if (text.empty() || net::parse_url(text)) return {};
  return std::unexpected(fmt::format("'{}' is no address as in https://oncall.example.com", text));
}

std::string read_file(const std::filesystem::path& file) {
  if (file.empty()) return {};
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in || text.str().empty())
    throw std::runtime_error(fmt::format("--manhunt-providers: {} cannot be read", file.string()));
  return text.str();
}

// What the system is made of, in the order in which one needs the other.
struct Running {
  Running(house::House& house, const ManhuntOptions& options, SendEmail send_email)
      : table(house.table_prefix + options.table),
        base(options.url.empty() ? house.web_url : options.url),
        domains(house.store, house.clock, house.secrets, table, options.verified_only),
        contacts(house.store, table),
        providers(make(house, options, std::move(send_email))),
        sender(house.store, house.clock, providers, {.base = base, .link_ttl = options.link_ttl}, table),
        searches({.store = house.store,
                  .clock = house.clock,
                  .schedule = house.schedule(),
                  .domains = domains,
                  .contacts = contacts},
                 table),
        bundles({.store = house.store,
                 .clock = house.clock,
                 .schedule = house.schedule(),
                 .domains = domains,
                 .contacts = contacts,
                 .sender = sender},
                table),
        replies(house.store, house.clock, searches),
        phones(house.store, searches),
        heartbeats({.store = house.store,
                    .clock = house.clock,
                    .schedule = house.schedule(),
                    .domains = domains,
                    .searches = searches},
                   table),
        verification(house.store, house.clock, sender, table),
        events({.clock = house.clock,
                .schedule = house.schedule(),
                .outbound = house.outbound,
                .domains = domains,
                .searches = searches}),
        runner({.store = house.store,
                .clock = house.clock,
                .schedule = house.schedule(),
                .domains = domains,
                .contacts = contacts,
                .searches = searches,
                .sender = sender,
                .bundles = bundles,
                .events = events},
               table) {}

  Providers make(house::House& house, const ManhuntOptions& options, SendEmail send_email) {
    auto made = make_providers(read_file(options.providers), {.outbound = house.outbound,
                                                              .clock = house.clock,
                                                              .domains = domains,
                                                              .send_email = std::move(send_email),
                                                              .email_from = options.email_from,
                                                              .base = base});
    if (!made)
      throw std::runtime_error(
          fmt::format("--manhunt-providers {}: {}", options.providers.string(), made.error()));
    return std::move(*made);
  }

  const std::string table;
  const std::string base;
  Domains domains;
  Contacts contacts;
  const Providers providers;
  Sender sender;
  Searches searches;
  Bundles bundles;
  Replies replies;
  Phones phones;
  Heartbeats heartbeats;
  Verification verification;
  Events events;
  Runner runner;
};

class ManhuntSystem final : public house::System {
 public:
  explicit ManhuntSystem(std::function<SendEmail()> send_email) : send_email_(std::move(send_email)) {}

  std::string_view name() const override { return "manhunt"; }
  std::string_view summary() const override {
    return "finds a person by phone, text, email and webhook, until they answer (REST, PagerDuty events, "
           "Alertmanager)";
  }
  OptionGroup options() override {
    return {"Manhunt",
            {{"--manhunt-table", text_option(options_.table, "NAME"),
              "Table with the contacts, searches and attempts"},
             {"--manhunt-url", text_option(options_.url, "URL", check_base_url),
              "What the addresses begin with that people and providers are given; unless told, where HTTP is "
              "served"},
             {"--manhunt-providers", path_option(options_.providers, "FILE"),
              "JSON file with who makes calls and sends texts; without one they are simulated"},
             {"--manhunt-email-from", text_option(options_.email_from, "ADDRESS"), "Whom emails are from"},
             {"--manhunt-link-ttl",
              time_option(options_.link_ttl, std::chrono::seconds{1}, std::chrono::days{30}),
              "For how long the links of messages are good"},
             {"--manhunt-verified-only", switch_option(options_.verified_only),
              "Use only methods that were verified, whatever a domain is set to"}}};
  }
  std::vector<store::TablePlan> tables(const std::string& prefix) const override {
    return {plan_manhunt_table(prefix + options_.table)};
  }
  void add_routes(net::Router& router) override { Api::add_routes({router, api_}); }

  void start(house::House& house) override {
    while (options_.url.ends_with('/')) options_.url.pop_back();
    running_ = std::make_unique<Running>(house, options_, send_email_());
    api_ = std::make_unique<Api>(Api::Parts{.clock = house.clock,
                                            .domains = running_->domains,
                                            .contacts = running_->contacts,
                                            .searches = running_->searches,
                                            .bundles = running_->bundles,
                                            .replies = running_->replies,
                                            .phones = running_->phones,
                                            .sender = running_->sender,
                                            .heartbeats = running_->heartbeats,
                                            .verification = running_->verification,
                                            .providers = running_->providers,
                                            .outbound = house.outbound,
                                            .long_work = house.long_work,
                                            .base = running_->base});
    house.consume({.table = running_->table, .consumer = "manhunt"},
                  store::StreamReader::BatchHandler(
                      [this](const std::string&, std::span<const store::StreamRecord> records) {
                        return running_->runner.handle(records);
                      }));
  }
  void write_metrics(metrics::Exposition& out) const override {
    running_->runner.write_metrics(out);
    running_->sender.write_metrics(out);
    running_->events.write_metrics(out);
  }

 private:
  const std::function<SendEmail()> send_email_;
  ManhuntOptions options_;
  std::unique_ptr<Running> running_;
  std::unique_ptr<Api> api_;
};

}  // namespace

std::unique_ptr<house::System> make_system(std::function<SendEmail()> send_email) {
  return std::make_unique<ManhuntSystem>(std::move(send_email));
}

}  // namespace tabella::manhunt
