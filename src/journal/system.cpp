#include "journal/system.h"

#include "house/house.h"
#include "journal/api.h"
#include "journal/parts.h"

namespace tabella::journal {
namespace {

class JournalSystem final : public house::System {
 public:
  std::string_view name() const override { return "journal"; }
  std::string_view summary() const override {
    return "keeps the events of every entity in order, for event sourcing (REST, Akka's and Pekko's tables)";
  }
  OptionGroup options() override { return option_table(options_); }
  std::vector<store::TablePlan> tables(const std::string& prefix) const override {
    return tables_of(options_, prefix);
  }
  void add_routes(net::Router& router) override { Api::add_routes({router, api_, house::Unlisted::refused}); }

  void start(house::House& house) override;
  void write_metrics(metrics::Exposition& out) const override;
  void stop_waiting() override;
  void stop(std::chrono::milliseconds grace) override;

 private:
  Options options_;
  std::shared_ptr<Parts> parts_;
  std::unique_ptr<Api> api_;
};

void JournalSystem::start(house::House& house) {
  parts_ = std::make_shared<Parts>(house.store, house.clock, options_, house.table_prefix, house.shared);
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
  for (auto& followed : followed_tables(parts_))
    house.consume(std::move(followed.options), std::move(followed.handler));
  auto& background = house.add_worker();
  for (auto& work : background_work(parts_)) background.run(std::move(work));
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
  if (parts_) parts_->stop();
}

}  // namespace

std::unique_ptr<house::System> make_system() { return std::make_unique<JournalSystem>(); }

}  // namespace tabella::journal
