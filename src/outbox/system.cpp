#include "outbox/system.h"

#include <unistd.h>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "base/ids.h"
#include "base/passwords.h"
#include "base/random.h"
#include "base/text.h"
#include "house/house.h"
#include "outbox/api.h"
#include "outbox/bounces.h"
#include "outbox/callbacks.h"
#include "outbox/dispatcher.h"
#include "outbox/intake.h"
#include "outbox/live.h"
#include "outbox/mysql_backend.h"
#include "outbox/notices.h"
#include "outbox/options.h"
#include "outbox/ses.h"
#include "outbox/store_backend.h"
#include "outbox/submission.h"
#include "smtp/server.h"
#include "store/conditional.h"
#include "store/outcomes.h"

namespace tabella::outbox {
namespace {

namespace asio = boost::asio;

std::string keys_table(const std::string& prefix) { return prefix + "tabella-outbox-keys"; }
std::string emails_table(const std::string& prefix, const Options& options) { return prefix + options.table; }

std::string worker_name(const house::House& house) {
  return fmt::format("{}{}-{}-{:08x}", house.shared ? "" : house::kWithStore, house.hostname, getpid(),
                     static_cast<uint32_t>(random_bits()));
}

std::vector<mime::DkimKey> dkim_keys(const Options& options) {
  std::vector<mime::DkimKey> keys;
  for (const auto& text : options.dkim) {
    const auto first = text.find(':');
    const auto second = text.find(':', first + 1);
    const auto file = text.substr(second + 1);
    std::ifstream in(file, std::ios::binary);
    std::stringstream pem;
    if (!in || !(pem << in.rdbuf()))
      throw std::runtime_error(fmt::format("--outbox-dkim: {} cannot be read", file));
    auto key = mime::DkimKey::from_pem(lower(text.substr(0, first)),
                                       text.substr(first + 1, second - first - 1), pem.str());
    if (!key) throw std::runtime_error(fmt::format("--outbox-dkim: {}: {}", file, key.error()));
    keys.push_back(std::move(*key));
  }
  return keys;
}

ServiceOptions service_options(const Options& options, const house::House& house) {
  return {
      .messages = messages_table(house.table_prefix),
      .worker = worker_name(house),
      .time_to_live = options.time_to_live == kForever ? std::nullopt : std::optional(options.time_to_live),
      .give_up = options.give_up,
      .lease = options.lease,
      .has_callback = !options.callback.empty()};
}

CarrierOptions carrier_options(const Options& options, const house::House& house) {
  const auto step = options.timeout / 5;
  return {.routes = routes_of(options),
          .hostname = house.hostname,
          .direct_security = options.tls,
          .direct_port = static_cast<uint16_t>(options.direct_port),
          .dns_servers = options.dns_servers,
          .ca_file = options.ca_file,
          .timeouts = {.connect = std::min<std::chrono::milliseconds>(step, std::chrono::seconds{30}),
                       .greeting = step,
                       .command = step,
                       .data = step,
                       .content = options.timeout}};
}

DispatcherOptions dispatcher_options(const Options& options, const house::House& house,
                                     const std::optional<BounceAddresses>& bounces) {
  DispatcherOptions dispatcher{.with_store = house.shared ? "" : house::kWithStore,
                               .lanes = {.concurrency = options.concurrency, .rates = rates_of(options)},
                               .retry = {.first = options.retry_first, .longest = options.retry_longest},
                               .if_unknown = options.if_unknown,
                               .stale = options.stale};
  // What is down is left alone for no longer than a message that failed is.
  dispatcher.lanes.first_down = std::min(dispatcher.lanes.first_down, options.retry_first);
  dispatcher.lanes.longest_down = std::min(dispatcher.lanes.longest_down, options.retry_longest);
  // Alone on the store there is only the command line to be noticed.
  if (!house.shared) dispatcher.poll = std::chrono::seconds{2};
  if (bounces)
    dispatcher.sender = [&bounces](const Message& message) { return bounces->address_of(message.id); };
  return dispatcher;
}

// The key that the addresses for bounces are made with: the same for all processes, and for ever.
store::Async<std::string> bounce_key(store::Store& store, std::string table) {
  const item::Item key = store::Row().set("id", "#mark").set("part", "bounce-key");
  const auto made = random_bytes(32);
  TABELLA_CO_TRY(store::was_made(co_await store.put_item(
      store::Put(table,
                 store::Row().set("id", "#mark").set("part", "bounce-key").set("bytes", store::Binary{made}))
          .when(store::absent("id")))));
  TABELLA_CO_ASSIGN(const auto found,
                    co_await store.get_item({.table = table, .key = key, .consistent = true}));
  co_return found.item ? store::binary_of(*found.item, "bytes") : made;
}

// Waits for a coroutine while the process starts.
template <class T>
T await_at_start(house::House& house, store::Async<T> work, std::string_view what) {
  auto result = asio::co_spawn(house.io.at(0), std::move(work), asio::use_future).get();
  if (!result) throw std::runtime_error(fmt::format("{}: {}", what, result.error().message));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::unique_ptr<Backend> make_backend(house::House& house, const Options& options,
                                      const std::string& worker) {
  if (options.database.empty())
    return std::make_unique<StoreBackend>(house.store, house.clock, emails_table(house.table_prefix, options),
                                          messages_table(house.table_prefix), worker);
  auto mysql = std::make_unique<MysqlBackend>(house.store, parse_mysql_url(options.database).value());
  await_at_start(house, mysql->prepare(), "--outbox-database");
  return mysql;
}

// What the outbox is made of once it is started, in the order in which one needs the other.
struct Parts {
  Parts(house::House& house, const Options& options, Capture capture)
      : service(service_options(options, house)),
        backend(make_backend(house, options, service.worker)),
        outbox(house.store, house.clock, *backend, service),
        composer(house.hostname, dkim_keys(options), house.clock, house.long_work),
        folder(options.folder.empty() ? nullptr : std::make_unique<Folder>(options.folder)),
        intake({.outbox = outbox,
                .composer = composer,
                .outbound = house.outbound,
                .folder = folder.get(),
                .long_work = house.long_work,
                .max_size = options.max_size}),
        callbacks(outbox, house.schedule(), house.outbound,
                  {.url = options.callback, .secret = options.callback_secret}),
        outcomes(house.store, house.clock, {.table = keys_table(house.table_prefix)}),
        live(*backend),
        notices(outbox, options.database.empty() ? emails_table(house.table_prefix, options) : ""),
        delivery(house.add_worker()),
        carrier(delivery.executor(), carrier_options(options, house), std::move(capture),
                house.outbound.rules()) {
    if (!options.bounce_domain.empty())
      bounce_addresses.emplace(await_at_start(house, bounce_key(house.store, service.messages), "the outbox"),
                               options.bounce_domain);
    dispatcher.emplace(outbox, carrier, intake, callbacks, delivery.executor(),
                       dispatcher_options(options, house, bounce_addresses));
    outbox.set_hands(dispatcher->hands());
    if (!options.auth_file.empty()) passwords.emplace(Passwords::read(options.auth_file));
    if (options.tls_files) identity.emplace(*options.tls_files);
    submission.emplace(outbox, composer, house.outbound, passwords ? &*passwords : nullptr);
    if (bounce_addresses)
      bounces.emplace(outbox, *bounce_addresses, [this](Bounce bounce) {
        return outbox.note_bounce(bounce.email, bounce.recipient, bounce.diagnostic);
      });
  }

  const ServiceOptions service;
  const std::unique_ptr<Backend> backend;
  Outbox outbox;
  Composer composer;
  const std::unique_ptr<Folder> folder;
  Intake intake;
  Callbacks callbacks;
  store::Outcomes outcomes;
  Live live;
  Notices notices;
  house::Worker& delivery;
  Carrier carrier;
  std::optional<BounceAddresses> bounce_addresses;
  std::optional<Dispatcher> dispatcher;
  std::optional<Passwords> passwords;
  std::optional<net::TlsIdentity> identity;
  std::optional<SubmissionHost> submission;
  std::optional<BounceHost> bounces;
  std::optional<smtp::Server> submission_port;
  std::optional<smtp::Server> bounces_port;
};

class OutboxSystem final : public house::System {
 public:
  OutboxSystem(std::function<Capture()> capture, std::shared_ptr<Handover> handover)
      : capture_(std::move(capture)), handover_(std::move(handover)) {}

  std::string_view name() const override { return "outbox"; }
  std::string_view summary() const override {
    return "takes emails and delivers them, or explains why not (REST, Amazon SES's API, SMTP)";
  }
  OptionGroup options() override { return option_table(options_); }
  std::vector<store::TablePlan> tables(const std::string& prefix) const override {
    std::vector<store::TablePlan> plans = {messages_plan(messages_table(prefix)),
                                           store::Outcomes::plan(keys_table(prefix))};
    if (options_.database.empty()) plans.push_back(StoreBackend::plan(emails_table(prefix, options_)));
    return plans;
  }
  void add_routes(net::Router& router) override {
    Api::add_routes({router, api_}, options_.max_size * 2);
    SesApi::add_routes({router, ses_});
  }
  bool listens() const override { return options_.submission || options_.bounces; }

  void start(house::House& house) override;
  std::vector<std::string> announce() const override;
  void write_metrics(metrics::Exposition& out) const override;
  void stop(std::chrono::milliseconds grace) override;

 private:
  void listen(house::House& house);
  void follow_tables(house::House& house);
  void clean_database(house::House& house);

  const std::function<Capture()> capture_;
  const std::shared_ptr<Handover> handover_;  // null: nobody hands emails over
  Options options_;
  std::shared_ptr<Parts> parts_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<SesApi> ses_;
};

void OutboxSystem::start(house::House& house) {
  auto capture = capture_();
  if (!capture && routes_of(options_).any(Mode::capture))
    throw std::runtime_error(
        "the outbox delivers into mail, which is not among --systems: add mail, or say where to with "
        "--outbox-mode relay or direct");
  parts_ = std::make_shared<Parts>(house, options_, std::move(capture));
  auto& parts = *parts_;
  api_ = std::make_unique<Api>(Api::Parts{.outbox = parts.outbox,
                                          .composer = parts.composer,
                                          .callbacks = parts.callbacks,
                                          .live = parts.live,
                                          .outcomes = parts.outcomes,
                                          .outbound = house.outbound,
                                          .folder = parts.folder.get(),
                                          .long_work = house.long_work,
                                          .max_size = options_.max_size,
                                          .stale = options_.stale});
  if (handover_) handover_->send = [this](std::string json) { return api_->take(std::move(json)); };
  ses_ = std::make_unique<SesApi>(parts.outbox, parts.composer, house.long_work, options_.max_size);
  follow_tables(house);
  listen(house);
  // What does not end in time is destroyed with the worker, and needs the parts until then.
  parts.delivery.run([kept = parts_] { return kept->dispatcher->run(); });
}

void OutboxSystem::follow_tables(house::House& house) {
  auto& parts = *parts_;
  auto& watching = house.add_worker();
  watching.run([kept = parts_] { return kept->notices.sweep(); });
  if (options_.database.empty()) {
    house.consume({.table = emails_table(house.table_prefix, options_),
                   .consumer = "outbox",
                   .batch = 1000,
                   .gather = std::chrono::milliseconds{100}},
                  [&parts](const std::string& shard, std::span<const store::StreamRecord> records) {
                    return parts.notices.handle(shard, records);
                  });
    return;
  }
  watching.run([kept = parts_] { return kept->notices.follow(); });
  clean_database(house);
}

// MySQL has no time to live: what is over is deleted every hour.
void OutboxSystem::clean_database(house::House& house) {
  if (options_.time_to_live == kForever) return;
  constexpr const char* kClean = "outbox-clean";
  auto& mysql = dynamic_cast<MysqlBackend&>(*parts_->backend);
  house.schedule().on(kClean, [this, &house, &mysql](const schedule::Firing&) -> asio::awaitable<void> {
    constexpr size_t kMost = 1000;
    while (true) {
      const auto removed = co_await mysql.clean(house.clock.now() - options_.time_to_live, kMost);
      if (!removed) throw std::runtime_error(removed.error().message);
      if (removed->size() < kMost) break;
    }
    const auto set = co_await house.schedule().put(
        {.id = kClean, .kind = kClean, .at = house.clock.now() + std::chrono::hours{1}});
    if (!set) throw std::runtime_error(set.error().message);
  });
  await_at_start(house, house.schedule().put({.id = kClean, .kind = kClean, .at = house.clock.now()}),
                 "the outbox");
}

void OutboxSystem::listen(house::House& house) {
  auto& parts = *parts_;
  smtp::ServerOptions server;
  server.session.hostname = house.hostname;
  server.session.max_message = options_.max_size;
  server.session.max_recipients = parts.service.max_recipients;
  server.session.offer_cram_md5 = false;
  server.listen.max_connections = 1000;
  server.listen.limits = &house.limits;
  const auto open = [&](std::optional<smtp::Server>& into, const std::optional<Address>& address,
                        auto& host) {
    if (!address) return;
    server.listen.host = address->host;
    server.listen.port = address->port;
    into.emplace(house.io, server, parts.identity ? &*parts.identity : nullptr,
                 [&host] { return host.invite(); });
  };
  if (parts.bounces) open(parts.bounces_port, options_.bounces, *parts.bounces);
  server.session.require_login = parts.passwords.has_value();
  open(parts.submission_port, options_.submission, *parts.submission);
}

std::vector<std::string> OutboxSystem::announce() const {
  std::vector<std::string> lines;
  for (const auto& key : dkim_keys(options_))
    lines.push_back(fmt::format("Mail from {} is signed; in its DNS: {} TXT \"{}\"", key.domain(),
                                key.dns_name(), key.dns_record()));
  if (parts_->submission_port)
    lines.push_back(fmt::format("Emails are sent by smtp://{}:{}{}", options_.submission->host,
                                parts_->submission_port->port(), parts_->identity ? " (STARTTLS)" : ""));
  if (parts_->bounces_port)
    lines.push_back(fmt::format("Bounces are taken on smtp://{}:{}", options_.bounces->host,
                                parts_->bounces_port->port()));
  return lines;
}

void OutboxSystem::write_metrics(metrics::Exposition& out) const {
  parts_->outbox.write_metrics(out);
  parts_->dispatcher->write_metrics(out);
  parts_->callbacks.write_metrics(out);
  if (parts_->bounces) parts_->bounces->write_metrics(out);
}

void OutboxSystem::stop(std::chrono::milliseconds grace) {
  if (!parts_) return;
  if (parts_->submission_port) parts_->submission_port->stop(grace);
  if (parts_->bounces_port) parts_->bounces_port->stop(grace);
  parts_->submission_port.reset();
  parts_->bounces_port.reset();
  parts_->notices.stop();
  parts_->dispatcher->stop();
}

}  // namespace

std::unique_ptr<house::System> make_system(std::function<Capture()> capture,
                                           std::shared_ptr<Handover> handover) {
  return std::make_unique<OutboxSystem>(std::move(capture), std::move(handover));
}

}  // namespace tabella::outbox
