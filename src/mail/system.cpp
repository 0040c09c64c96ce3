#include "mail/system.h"

#include <optional>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "base/passwords.h"
#include "house/house.h"
#include "mail/api.h"
#include "mail/host.h"
#include "mail/options.h"
#include "mail/reconciler.h"
#include "mail/webhooks.h"
#include "mail/worker.h"
#include "smtp/server.h"
#include "store/settings.h"
#include "webhook/hooks.h"

namespace tabella::mail {
namespace {

namespace asio = boost::asio;

ServiceOptions service_options(const Options& options, const house::House& house) {
  auto service = table_names(house.table_prefix);
  service.shared = house.shared;
  service.granularity = options.granularity;
  service.time_to_live = options.time_to_live;
  service.hostname = house.hostname;
  service.most_messages = options.most_messages;
  // Clocks of several machines do not agree to the second.
  service.settle = options.settle.value_or(house.shared ? std::chrono::seconds{20} : std::chrono::seconds{2});
  return service;
}

std::map<std::string, OutgoingServer> outgoing_servers(const Options& options) {
  return options.outgoing_file.empty() ? std::map<std::string, OutgoingServer>()
                                       : read_outgoing_file(options.outgoing_file);
}

std::vector<webhook::Hook> fixed_webhooks(const Options& options) {
  std::vector<webhook::Hook> hooks;
  for (size_t i = 0; i < options.webhooks.size(); ++i)
    hooks.push_back({.id = fmt::format("option-{}", i + 1),
                     .url = options.webhooks[i],
                     .secret = options.webhook_secret,
                     .trusted = true});
  return hooks;
}

// What mail is made of once it is started, in the order in which one needs the other.
struct Parts {
  Parts(house::House& house, const Options& options, std::function<store::Async<void>()> repair)
      : mail(house.store, house.clock, service_options(options, house)),
        settings(house.store, mail.options().settings),
        live(house.add_worker()),
        feed(mail, arrivals, live.executor()),
        release(mail, settings, house.secrets, house.outbound.rules(), outgoing_servers(options)),
        webhooks("mail",
                 {.settings = settings,
                  .secrets = house.secrets,
                  .schedule = house.schedule(),
                  .outbound = house.outbound,
                  .clock = house.clock},
                 fixed_webhooks(options),
                 [this](const webhook::Hook& hook, const std::string& id) {
                   return render_for_webhook(mail, hook, id);
                 }),
        host(mail, jim, arrivals,
             options.auth_file.empty() ? nullptr : &passwords.emplace(Passwords::read(options.auth_file))),
        worker(mail, arrivals, house.shared, std::move(repair)),
        reconciler(mail, arrivals) {
    if (options.tls) identity.emplace(*options.tls);
  }

  std::optional<net::TlsIdentity> identity;
  std::optional<Passwords> passwords;
  Mail mail;
  store::Settings settings;
  Jim jim;
  Arrivals arrivals;
  house::Worker& live;  // where messages are made ready for those who listen
  Feed feed;
  Release release;
  webhook::Hooks webhooks;
  MailHost host;
  Worker worker;
  Reconciler reconciler;
  std::optional<smtp::Server> smtp;
  std::optional<smtp::Server> smtps;
};

class MailSystem final : public house::System {
 public:
  explicit MailSystem(std::shared_ptr<Handover> handover) : handover_(std::move(handover)) {}

  std::string_view name() const override { return "mail"; }
  std::string_view summary() const override {
    return "catches every email that is sent to it, and shows it (MailHog's API, and more)";
  }
  OptionGroup options() override { return option_table(options_); }
  std::vector<store::TablePlan> tables(const std::string& prefix) const override {
    const auto names = table_names(prefix);
    auto plans = Mail::plans(names);
    plans.push_back(store::Settings::plan(names.settings));
    return plans;
  }
  void add_routes(net::Router& router) override { Api::add_routes({router, api_}); }
  bool listens() const override { return options_.smtp || options_.smtps; }

  void start(house::House& house) override;
  std::vector<std::string> announce() const override;
  void write_metrics(metrics::Exposition& out) const override;
  void stop_waiting() override;
  void stop(std::chrono::milliseconds grace) override;

 private:
  void listen(house::House& house);

  const std::shared_ptr<Handover> handover_;  // null: nobody hands mail over
  Options options_;
  std::unique_ptr<Parts> parts_;
  std::unique_ptr<Api> api_;
};

store::Async<std::string> hand_over(Parts& parts, smtp::Envelope envelope) {
  TABELLA_CO_ASSIGN(auto id, co_await parts.mail.take(std::move(envelope)));
  parts.arrivals.publish(id);
  co_return id;
}

void MailSystem::start(house::House& house) {
  // Somebody may delete our tables; on a store of our own they are made again.
  std::function<store::Async<void>()> repair;
  if (!house.shared)
    repair = [&store = house.store, plans = tables(house.table_prefix)] {
      return store::prepare_tables(store, plans, store::Missing::create);
    };
  parts_ = std::make_unique<Parts>(house, options_, std::move(repair));
  auto& parts = *parts_;
  api_ = std::make_unique<Api>(parts.mail, parts.jim, parts.arrivals, parts.feed, parts.release,
                               parts.webhooks, house.web_path);
  parts.jim.set_defaults(options_.chances);
  if (options_.invite_jim) parts.jim.invite(std::nullopt);
  parts.mail.before_keeping([&parts](const std::string& id) { return parts.webhooks.announce(id); });
  if (const auto joined = asio::co_spawn(house.io.at(0), parts.mail.join(), asio::use_future).get(); !joined)
    throw std::runtime_error(fmt::format("the mail index cannot be read: {}", joined.error().message));
  if (handover_)
    handover_->take = [&parts](smtp::Envelope envelope) { return hand_over(parts, std::move(envelope)); };
  listen(house);
  house.consume({.table = parts.mail.options().messages,
                 .consumer = "mail-index",
                 .batch = 1000,
                 .gather = std::chrono::milliseconds{200}},
                [&parts](const store::StreamRecord& record) { return parts.reconciler.handle(record); });
  parts.live.run([&parts] { return parts.feed.run(); });
  if (house.shared) parts.live.run([&parts] { return parts.worker.follow_others(); });
  house.add_worker().run([&parts] { return parts.worker.run(); });
}

void MailSystem::listen(house::House& house) {
  auto& parts = *parts_;
  smtp::ServerOptions server;
  server.session.hostname = house.hostname;
  server.session.max_message = options_.max_message;
  server.session.max_recipients = options_.max_recipients;
  server.session.require_tls = options_.require_tls;
  server.session.require_login = !options_.auth_file.empty();
  server.session.offer_cram_md5 = !parts.passwords || parts.passwords->all_plain();
  server.listen.max_connections = options_.max_connections;
  server.listen.limits = &house.limits;
  const auto* identity = parts.identity ? &*parts.identity : nullptr;
  const auto open = [&](std::optional<smtp::Server>& into, const std::optional<Address>& address) {
    if (!address) return;
    server.listen.host = address->host;
    server.listen.port = address->port;
    into.emplace(house.io, server, identity, [&parts] { return parts.host.invite(); });
  };
  open(parts.smtp, options_.smtp);
  server.tls_from_the_start = true;
  open(parts.smtps, options_.smtps);
}

std::vector<std::string> MailSystem::announce() const {
  std::vector<std::string> lines;
  if (parts_->smtp)
    lines.push_back(fmt::format("Mail is caught on smtp://{}:{}{}", options_.smtp->host, parts_->smtp->port(),
                                parts_->identity ? " (STARTTLS)" : ""));
  if (parts_->smtps)
    lines.push_back(
        fmt::format("Mail is caught on smtps://{}:{}", options_.smtps->host, parts_->smtps->port()));
  return lines;
}

void MailSystem::write_metrics(metrics::Exposition& out) const {
  parts_->mail.write_metrics(out);
  parts_->worker.write_metrics(out);
  parts_->reconciler.write_metrics(out);
  parts_->webhooks.write_metrics(out);
  const auto sessions =
      (parts_->smtp ? parts_->smtp->connections() : 0) + (parts_->smtps ? parts_->smtps->connections() : 0);
  out.gauge("tabella_smtp_sessions", "SMTP sessions that are open", static_cast<double>(sessions));
}

void MailSystem::stop_waiting() {
  if (api_) api_->stop();
  if (parts_) parts_->feed.stop();
}

void MailSystem::stop(std::chrono::milliseconds grace) {
  if (!parts_) return;
  if (parts_->smtp) parts_->smtp->stop(grace);
  if (parts_->smtps) parts_->smtps->stop(grace);
  parts_->smtp.reset();
  parts_->smtps.reset();
  parts_->worker.stop();
}

}  // namespace

std::unique_ptr<house::System> make_system(std::shared_ptr<Handover> handover) {
  return std::make_unique<MailSystem>(std::move(handover));
}

}  // namespace tabella::mail
