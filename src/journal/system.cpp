#include "journal/system.h"

#include <fmt/format.h>

#include "house/house.h"
#include "journal/adoption.h"
#include "journal/api.h"
#include "journal/options.h"
#include "journal/placement.h"
#include "journal/sweeper.h"

namespace tabella::journal {
namespace {

std::string heads_table(const std::string& prefix) { return prefix + "tabella-journal-heads"; }
std::string order_table(const std::string& prefix) { return prefix + "tabella-journal-order"; }
std::string consumers_table(const std::string& prefix) { return prefix + "tabella-journal-consumers"; }
std::string snapshots_table(const std::string& prefix, const Options& options) {
  return prefix + options.snapshots_table;
}

Journal::Options journal_options(const house::House& house, const Options& options) {
  return {.heads_table = heads_table(house.table_prefix),
          .retention = options.retention == kForever ? std::chrono::seconds{0} : options.retention,
          .operation_timeout = options.operation_timeout};
}

// What the journal is made of once it is started, in the order in which one needs the other.
struct Parts {
  Parts(house::House& house, const Options& options)
      : layout(layout_of(options, house.table_prefix)),
        journal(house.store, house.clock, *layout, journal_options(house, options),
                [this](const Entity& entity, uint64_t highest) {
                  adoption.appended(entity, highest);
                  watch.appended(entity, highest);
                }),
        order(house.store, house.clock, journal, order_table(house.table_prefix)),
        watch(order, house.shared),
        placement(house.store, house.clock, journal, order_table(house.table_prefix),
                  [this](const std::string& name, uint64_t last) {
                    counts.placed(name, last);
                    watch.placed(name, last);
                  }),
        adoption(house.store, journal,
                 [this](const Entity& entity, uint64_t highest) { watch.appended(entity, highest); }),
        snapshots(house.store, snapshots_table(house.table_prefix, options)),
        consumers(house.store, house.clock, order, consumers_table(house.table_prefix)),
        sweeper(journal, counts) {}

  Counts counts;
  const std::unique_ptr<Layout> layout;
  Journal journal;
  Order order;
  Watch watch;
  Placement placement;
  Adoption adoption;
  Snapshots snapshots;
  Consumers consumers;
  Sweeper sweeper;
};

class JournalSystem final : public house::System {
 public:
  std::string_view name() const override { return "journal"; }
  std::string_view summary() const override {
    return "keeps the events of every entity in order, for event sourcing (REST, Akka's and Pekko's tables)";
  }
  OptionGroup options() override { return option_table(options_); }
  std::vector<store::TablePlan> tables(const std::string& prefix) const override {
    return {layout_of(options_, prefix)->plan(), Heads::plan(heads_table(prefix)),
            Order::plan(order_table(prefix)), Consumers::plan(consumers_table(prefix)),
            Snapshots::plan(snapshots_table(prefix, options_))};
  }
  void add_routes(net::Router& router) override { Api::add_routes({router, api_}); }

  void start(house::House& house) override;
  void write_metrics(metrics::Exposition& out) const override;
  void stop_waiting() override;
  void stop(std::chrono::milliseconds grace) override;

 private:
  void follow_tables(house::House& house);

  Options options_;
  std::shared_ptr<Parts> parts_;
  std::unique_ptr<Api> api_;
};

void JournalSystem::start(house::House& house) {
  parts_ = std::make_shared<Parts>(house, options_);
  auto& parts = *parts_;
  api_ = std::make_unique<Api>(Api::Parts{.journal = parts.journal,
                                          .order = parts.order,
                                          .snapshots = parts.snapshots,
                                          .consumers = parts.consumers,
                                          .watch = parts.watch,
                                          .counts = parts.counts,
                                          .clock = house.clock,
                                          .long_work = house.long_work,
                                          .journal_name = options_.name});
  follow_tables(house);
  // What does not end in time is destroyed with the worker, and needs the parts until then.
  auto& background = house.add_worker();
  background.run([kept = parts_] { return kept->watch.run(); });
  background.run([kept = parts_] { return kept->sweeper.run(); });
}

void JournalSystem::follow_tables(house::House& house) {
  house.consume({.table = heads_table(house.table_prefix), .consumer = "journal-order", .batch = 1000},
                [kept = parts_](const std::string& shard, std::span<const store::StreamRecord> records) {
                  return kept->placement.handle(shard, records);
                });
  house.consume({.table = parts_->layout->table(),
                 .consumer = "journal-adoption",
                 .batch = 1000,
                 .gather = std::chrono::milliseconds{100}},
                [kept = parts_](const std::string& shard, std::span<const store::StreamRecord> records) {
                  return kept->adoption.handle(shard, records);
                });
}

void JournalSystem::write_metrics(metrics::Exposition& out) const {
  parts_->counts.write_metrics(out);
  out.counter("tabella_journal_adopted_total",
              "Times that events were found which other programs had written",
              static_cast<double>(parts_->adoption.count()));
}

void JournalSystem::stop_waiting() {
  if (api_) api_->stop();
}

void JournalSystem::stop(std::chrono::milliseconds) {
  if (!parts_) return;
  parts_->watch.stop();
  parts_->sweeper.stop();
}

}  // namespace

std::unique_ptr<house::System> make_system() { return std::make_unique<JournalSystem>(); }

}  // namespace tabella::journal
