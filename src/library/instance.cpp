#include "library/instance.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <list>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "base/log.h"
#include "engine/engine.h"
#include "journal/parts.h"
#include "net/threads.h"
#include "remote/remote_store.h"
#include "store/leases.h"
#include "store/stream_reader.h"
#include "store/tables.h"

namespace tabella {

namespace asio = boost::asio;

namespace {

std::unique_ptr<store::Store> open_endpoint(std::string_view text, const Clock& clock) {
  auto endpoint = remote::parse_endpoint(text, remote::default_region({}));
  if (!endpoint) throw std::runtime_error(fmt::format("{}: {}", text, endpoint.error()));
  remote::RemoteOptions options;
  options.calls.credentials.any_will_do = !endpoint->aws;
  options.calls.endpoint = std::move(*endpoint);
  return std::make_unique<remote::RemoteStore>(std::move(options), clock);
}

}  // namespace

// In the order in which one needs the other.
struct Instance::Parts {
  using Open = std::function<std::unique_ptr<store::Store>(const Clock&, store::LongWork)>;

  Parts(const InstanceOptions& given, bool shared, const Open& open);
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  std::string leases_table() const { return options.table_prefix + "tabella-consumers"; }
  void prepare_tables();
  void begin_background();
  void end_background();

  const InstanceOptions options;
  const SystemClock clock;
  net::WorkThreads work{2};
  const std::unique_ptr<store::Store> store;
  const std::shared_ptr<journal::Parts> journal;
  net::IoThreads threads;
  std::atomic<size_t> next_thread = 0;

  std::list<store::StreamReader> readers;
  std::optional<net::IoThreads> background;
  std::vector<std::future<void>> running;  // in the background
};

Instance::Parts::Parts(const InstanceOptions& given, bool shared, const Open& open)
    : options(given),
      store(open(clock, store::LongWork(work.executor()))),
      journal(std::make_shared<journal::Parts>(*store, clock, options.journal, options.table_prefix, shared)),
      threads(std::max<size_t>(options.threads, 1)) {
  prepare_tables();
  if (options.background) begin_background();
}

Instance::Parts::~Parts() {
  if (background) end_background();
  threads.stop();
  work.stop();
}

void Instance::Parts::prepare_tables() {
  auto plans = journal::tables_of(options.journal, options.table_prefix);
  if (options.background) plans.push_back(store::Leases::plan(leases_table()));
  const auto missing = options.create_tables ? store::Missing::create : store::Missing::refuse;
  auto prepared = asio::co_spawn(threads.at(0), store::prepare_tables(*store, std::move(plans), missing),
                                 asio::use_future)
                      .get();
  if (!prepared) throw std::runtime_error(prepared.error().message);
}

void Instance::Parts::begin_background() {
  background.emplace(1);
  const auto run = [this](asio::awaitable<void> work_without_end) {
    running.push_back(asio::co_spawn(background->at(0), std::move(work_without_end), asio::use_future));
  };
  for (auto& followed : journal::followed_tables(journal)) {
    followed.options.lease_table = leases_table();
    run(readers.emplace_back(*store, clock, std::move(followed.options), std::move(followed.handler)).run());
  }
  for (const auto& work_without_end : journal::background_work(journal)) run(work_without_end());
}

void Instance::Parts::end_background() {
  asio::post(background->at(0), [this] {
    for (auto& reader : readers) reader.stop();
    journal->stop();
  });
  for (auto& ending : running) {
    try {
      ending.get();
    } catch (const std::exception& error) {
      log::error("work in the background has ended early: {}", error.what());
    }
  }
  background->stop();
}

Instance::Instance(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Instance::~Instance() = default;

store::Store& Instance::store() { return *parts_->store; }
const Clock& Instance::clock() const { return parts_->clock; }
journal::Journal& Instance::journal() { return parts_->journal->journal; }
journal::Snapshots& Instance::snapshots() { return parts_->journal->snapshots; }
const journal::Order& Instance::order() const { return parts_->journal->order; }
journal::Watch& Instance::watch() { return parts_->journal->watch; }
journal::Consumers& Instance::consumers() { return parts_->journal->consumers; }

asio::any_io_executor Instance::executor() {
  return parts_->threads.at(parts_->next_thread++ % parts_->threads.size()).get_executor();
}

Local::Local(const std::filesystem::path& folder, const InstanceOptions& options)
    : Instance(std::make_unique<Parts>(options, false, [&](const Clock& clock, store::LongWork long_work) {
        return std::make_unique<engine::Engine>(
            engine::Engine::Options{.folder = folder, .long_work = std::move(long_work)}, clock);
      })) {}

Remote::Remote(std::string_view endpoint, const InstanceOptions& options)
    : Instance(std::make_unique<Parts>(options, true, [&](const Clock& clock, store::LongWork) {
        return open_endpoint(endpoint, clock);
      })) {}

std::unique_ptr<Instance> open(const std::string& place, const InstanceOptions& options) {
  if (place.contains("://")) return std::make_unique<Remote>(place, options);
  return std::make_unique<Local>(place, options);
}

}  // namespace tabella
