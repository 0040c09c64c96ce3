#include "app/mail.h"

#include <sys/resource.h>
#include <unistd.h>
#include <cstdio>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

namespace tabella::app {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds kBackgroundGrace{5};

mail::MailOptions service_options(const ServeOptions& options, bool shared) {
  auto mail = mail_tables(options.table_prefix);
  mail.shared = shared;
  mail.granularity = options.mail.granularity;
  mail.time_to_live = options.mail.time_to_live;
  mail.hostname = options.mail.hostname;
  mail.most_messages = options.mail.most_messages;
  // Clocks of several machines do not agree to the second.
  mail.settle = options.mail.settle.value_or(shared ? std::chrono::seconds{20} : std::chrono::seconds{2});
  return mail;
}

schedule::Schedule::Options timer_options(const ServeOptions& options, bool shared) {
  schedule::Schedule::Options timers;
  timers.table = options.table_prefix + "tabella-timers";
  // Alone on the store, its own timers wake it.
  if (!shared) timers.busy_poll = timers.poll = std::chrono::seconds{30};
  return timers;
}

store::StreamReader::Options stream_options(const ServeOptions& options) {
  return {.table = mail_tables(options.table_prefix).messages,
          .consumer = "mail-index",
          .lease_table = options.table_prefix + "tabella-consumers",
          .batch = 1000,
          .gather = std::chrono::milliseconds{200}};
}

std::vector<mail::Webhook> fixed_webhooks(const MailOptions& options) {
  std::vector<mail::Webhook> hooks;
  for (size_t i = 0; i < options.webhooks.size(); ++i)
    hooks.push_back({.id = fmt::format("option-{}", i + 1),
                     .url = options.webhooks[i],
                     .secret = options.webhook_secret});
  return hooks;
}

}  // namespace

mail::MailOptions mail_tables(const std::string& prefix) {
  mail::MailOptions mail;
  mail.messages = prefix + "tabella-mail";
  mail.index = prefix + "tabella-mail-index";
  mail.settings = prefix + "tabella-mail-settings";
  return mail;
}

std::vector<store::TablePlan> MailSide::plans(const ServeOptions& options) {
  const auto mail = service_options(options, false);
  auto plans = mail::Mail::plans(mail);
  plans.push_back(mail::Settings::plan(mail.settings));
  plans.push_back(store::Leases::plan(stream_options(options).lease_table));
  return plans;
}

MailSide::MailSide(store::Store& store, const Clock& clock, const ServeOptions& options,
                   net::IoThreads& threads, net::Limits& limits, bool shared)
    : options_(options.mail),
      mail_(store, clock, service_options(options, shared)),
      settings_(store, mail_.options().settings),
      schedule_(store, clock, timer_options(options, shared)),
      live_(1),
      feed_(mail_, arrivals_, live_.at(0).get_executor()),
      release_(mail_, settings_,
               options_.outgoing_file.empty() ? std::map<std::string, mail::OutgoingServer>()
                                              : mail::read_outgoing_file(options_.outgoing_file)),
      webhooks_(mail_, settings_, schedule_, fixed_webhooks(options_)),
      api_(mail_, jim_, arrivals_, feed_, release_, webhooks_,
           {.web_path = options.web_path, .cors_origin = options.cors_origin}),
      host_(mail_, jim_, arrivals_,
            options_.auth_file.empty() ? nullptr : &passwords_.emplace(Passwords::read(options_.auth_file))),
      worker_(
          mail_, arrivals_, shared,
          shared ? std::function<store::Async<void>()>()
                 : [&store,
                    tables = plans(
                        options)] { return store::prepare_tables(store, tables, store::Missing::create); }),
      reconciler_(mail_, arrivals_),
      stream_(store, clock, stream_options(options),
              [this](const store::StreamRecord& record) { return reconciler_.handle(record); }),
      background_(1) {
  if (options_.tls) identity_.emplace(*options_.tls);
  jim_.set_defaults(options_.chances);
  if (options_.invite_jim) jim_.invite(std::nullopt);
  mail_.before_keeping([this](const std::string& id) { return webhooks_.announce(id); });
  if (const auto joined = asio::co_spawn(threads.at(0), mail_.join(), asio::use_future).get(); !joined)
    throw std::runtime_error(fmt::format("the mail index cannot be read: {}", joined.error().message));
  listen(threads, limits, options_);
  // Taking mail in goes before looking through it.
  asio::post(background_.at(0), [] { setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10); });
  const auto begin = [&](asio::awaitable<void> work) {
    running_.push_back(asio::co_spawn(background_.at(0), std::move(work), asio::use_future));
  };
  begin(worker_.run());
  begin(worker_.follow_others());
  begin(stream_.run());
  begin(schedule_.run());
  running_.push_back(asio::co_spawn(live_.at(0), feed_.run(), asio::use_future));
}

MailSide::~MailSide() { stop(kBackgroundGrace); }

void MailSide::listen(net::IoThreads& threads, net::Limits& limits, const MailOptions& options) {
  smtp::ServerOptions server;
  server.session.hostname = options.hostname;
  server.session.max_message = options.max_message;
  server.session.max_recipients = options.max_recipients;
  server.session.require_tls = options.require_tls;
  server.session.require_login = !options.auth_file.empty();
  server.session.offer_cram_md5 = !passwords_ || passwords_->all_plain();
  server.listen.max_connections = options.max_connections;
  server.listen.limits = &limits;
  const auto* identity = identity_ ? &*identity_ : nullptr;
  const auto open = [&](std::optional<smtp::Server>& into, const std::optional<Address>& address) {
    if (!address) return;
    server.listen.host = address->host;
    server.listen.port = address->port;
    into.emplace(threads, server, identity, [this] { return host_.invite(); });
  };
  open(smtp_, options.smtp);
  server.tls_from_the_start = true;
  open(smtps_, options.smtps);
}

void MailSide::announce() const {
  if (smtp_)
    fmt::print("Mail is caught on smtp://{}:{}{}\n", options_.smtp->host, smtp_->port(),
               identity_ ? " (STARTTLS)" : "");
  if (smtps_) fmt::print("Mail is caught on smtps://{}:{}\n", options_.smtps->host, smtps_->port());
}

void MailSide::write_metrics(metrics::Exposition& out) const {
  mail_.write_metrics(out);
  worker_.write_metrics(out);
  reconciler_.write_metrics(out);
  webhooks_.write_metrics(out);
  schedule_.write_metrics(out);
  const auto sessions = (smtp_ ? smtp_->connections() : 0) + (smtps_ ? smtps_->connections() : 0);
  out.gauge("tabella_smtp_sessions", "SMTP sessions that are open", static_cast<double>(sessions));
}

void MailSide::stop(std::chrono::milliseconds grace) {
  if (smtp_) smtp_->stop(grace);
  if (smtps_) smtps_->stop(grace);
  smtp_.reset();
  smtps_.reset();
  worker_.stop();
  feed_.stop();
  if (!running_.empty())
    asio::post(background_.at(0), [this] {
      schedule_.stop();
      stream_.stop();
    });
  // A store that does not answer is not waited for: what is under way can be done again.
  const auto until =
      std::chrono::steady_clock::now() + std::min<std::chrono::milliseconds>(grace, kBackgroundGrace);
  for (auto& running : running_) running.wait_until(until);
  running_.clear();
  background_.stop();
  live_.stop();
}

}  // namespace tabella::app
