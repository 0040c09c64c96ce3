#include "journal/parts.h"

namespace tabella::journal {
namespace {

std::string heads_table(const std::string& prefix) { return prefix + "tabella-journal-heads"; }
std::string order_table(const std::string& prefix) { return prefix + "tabella-journal-order"; }
std::string consumers_table(const std::string& prefix) { return prefix + "tabella-journal-consumers"; }
std::string snapshots_table(const std::string& prefix, const Options& options) {
  return prefix + options.snapshots_table;
}

Journal::Options journal_options(const Options& options, const std::string& prefix) {
  return {.heads_table = heads_table(prefix),
          .retention = options.retention == kForever ? std::chrono::seconds{0} : options.retention,
          .operation_timeout = options.operation_timeout};
}

}  // namespace

std::vector<store::TablePlan> tables_of(const Options& options, const std::string& prefix) {
  return {layout_of(options, prefix)->plan(), Heads::plan(heads_table(prefix)),
          Order::plan(order_table(prefix)), Consumers::plan(consumers_table(prefix)),
          Snapshots::plan(snapshots_table(prefix, options))};
}

Parts::Parts(store::Store& store, const Clock& clock, const Options& options, const std::string& prefix,
             bool shared)
    : layout(layout_of(options, prefix)),
      journal(store, clock, *layout, journal_options(options, prefix),
              [this](const Entity& entity, uint64_t highest) {
                adoption.appended(entity, highest);
                watch.appended(entity, highest);
              }),
      order(store, clock, journal, order_table(prefix)),
      watch(order, shared),
      placement(store, clock, journal, order_table(prefix),
                [this](const std::string& name, uint64_t last) {
                  counts.placed(name, last);
                  watch.placed(name, last);
                }),
      adoption(store, journal,
               [this](const Entity& entity, uint64_t highest) { watch.appended(entity, highest); }),
      snapshots(store, snapshots_table(prefix, options)),
      consumers(store, clock, order, consumers_table(prefix)),
      sweeper(journal, counts),
      first_scan(store, journal, adoption) {}

void Parts::stop() {
  watch.stop();
  sweeper.stop();
  first_scan.stop();
}

std::vector<Work> background_work(const std::shared_ptr<Parts>& parts) {
  return {[parts] { return parts->watch.run(); }, [parts] { return parts->sweeper.run(); },
          [parts] { return parts->first_scan.run(); }};
}

std::vector<Followed> followed_tables(const std::shared_ptr<Parts>& parts) {
  using Records = std::span<const store::StreamRecord>;
  return {{.options = {.table = parts->journal.heads().table(), .consumer = "journal-order", .batch = 1000},
           .handler = [parts](const std::string& shard,
                              Records records) { return parts->placement.handle(shard, records); }},
          {.options = {.table = parts->layout->table(),
                       .consumer = "journal-adoption",
                       .batch = 1000,
                       .gather = std::chrono::milliseconds{100}},
           .handler = [parts](const std::string& shard, Records records) {
             return parts->adoption.handle(shard, records);
           }}};
}

}  // namespace tabella::journal
