#include "library/instance.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "base/log.h"
#include "engine/engine.h"
#include "journal/placement.h"
#include "net/threads.h"
#include "remote/remote_store.h"
#include "store/leases.h"
#include "store/stream_reader.h"
#include "store/tables.h"

namespace tabella {

namespace asio = boost::asio;

namespace {

struct TableNames {
  explicit TableNames(const InstanceOptions& options)
      : events(options.table_prefix + options.journal_table),
        snapshots(options.table_prefix + options.snapshots_table),
        heads(events + "-heads"),
        order(events + "-order"),
        consumers(events + "-consumers"),
        leases(options.table_prefix + "tabella-consumers") {}

  std::string events, snapshots, heads, order, consumers, leases;
};

std::unique_ptr<journal::Layout> make_layout(const InstanceOptions& options, const TableNames& tables) {
  const journal::Layout::Options layout{.table = tables.events, .sequence_shards = options.sequence_shards};
  return options.layout == InstanceOptions::Layout::blocks ? journal::make_blocks_layout(layout)
                                                           : journal::make_keys_layout(layout);
}

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

  Parts(const InstanceOptions& given, bool elsewhere, const Open& open);
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void prepare_tables();
  void begin_ordering();
  void end_ordering();

  const InstanceOptions options;
  const TableNames tables{options};
  const SystemClock clock;
  net::WorkThreads work{2};
  const std::unique_ptr<store::Store> store;
  const std::unique_ptr<journal::Layout> layout = make_layout(options, tables);
  journal::Journal journal;
  journal::Snapshots snapshots;
  journal::Order order;
  journal::Watch watch;
  journal::Consumers consumers;
  journal::Placement placement;
  std::optional<store::StreamReader> reader;  // for the placement
  net::IoThreads threads;
  net::IoThreads background{1};
  std::vector<std::future<void>> running;  // in the background
  std::atomic<size_t> next_thread = 0;
};

Instance::Parts::Parts(const InstanceOptions& given, bool elsewhere, const Open& open)
    : options(given),
      store(open(clock, store::LongWork(work.executor()))),
      journal(*store, clock, *layout, {.heads_table = tables.heads, .retention = options.retention},
              [this](const journal::Entity& entity, uint64_t highest) { watch.appended(entity, highest); }),
      snapshots(*store, tables.snapshots),
      order(*store, journal, tables.order),
      watch(order, elsewhere),
      consumers(*store, clock, order, tables.consumers),
      placement(*store, clock, journal, tables.order,
                [this](const std::string& name, uint64_t last) { watch.placed(name, last); }),
      threads(std::max<size_t>(options.threads, 1)) {
  prepare_tables();
  if (options.order_events) begin_ordering();
}

Instance::Parts::~Parts() {
  end_ordering();
  background.stop();
  threads.stop();
  work.stop();
}

void Instance::Parts::prepare_tables() {
  std::vector<store::TablePlan> plans{
      layout->plan(), journal::Heads::plan(tables.heads), journal::Snapshots::plan(tables.snapshots),
      journal::Order::plan(tables.order), journal::Consumers::plan(tables.consumers)};
  if (options.order_events) plans.push_back(store::Leases::plan(tables.leases));
  const auto missing = options.create_tables ? store::Missing::create : store::Missing::refuse;
  const auto prepared =
      asio::co_spawn(threads.at(0), store::prepare_tables(*store, std::move(plans), missing),
                     asio::use_future)
          .get();
  if (!prepared) throw std::runtime_error(prepared.error().message);
}

void Instance::Parts::begin_ordering() {
  reader.emplace(*store, clock,
                 store::StreamReader::Options{
                     .table = tables.heads, .consumer = "journal-order", .lease_table = tables.leases},
                 [this](const std::string& shard, std::span<const store::StreamRecord> records) {
                   return placement.handle(shard, records);
                 });
  running.push_back(asio::co_spawn(background.at(0), reader->run(), asio::use_future));
  running.push_back(asio::co_spawn(background.at(0), watch.run(), asio::use_future));
}

void Instance::Parts::end_ordering() {
  if (running.empty()) return;
  asio::post(background.at(0), [this] {
    reader->stop();
    watch.stop();
  });
  for (auto& work_without_end : running) {
    try {
      work_without_end.get();
    } catch (const std::exception& error) {
      log::error("work in the background has ended early: {}", error.what());
    }
  }
}

Instance::Instance(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Instance::~Instance() = default;

store::Store& Instance::store() { return *parts_->store; }
const Clock& Instance::clock() const { return parts_->clock; }
journal::Journal& Instance::journal() { return parts_->journal; }
journal::Snapshots& Instance::snapshots() { return parts_->snapshots; }
const journal::Order& Instance::order() const { return parts_->order; }
journal::Watch& Instance::watch() { return parts_->watch; }
journal::Consumers& Instance::consumers() { return parts_->consumers; }

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
