#include "inbox/system.h"

#include "house/house.h"
#include "inbox/api.h"

namespace tabella::inbox {
namespace {

// What the system is made of, in the order in which one needs the other.
struct Running {
  Running(house::House& house, const std::string& table)
      : sequence(house.clock),
        settings(house.store, house.clock, table),
        broadcasts(house.store, house.clock, table),
        boxes(house.store, house.clock, broadcasts, sequence, table),
        posts(house.store, house.clock, boxes, sequence, house.schedule(), table, changed()),
        snoozes(boxes, house.schedule(), changed()) {}

  std::function<void(const std::string&)> changed() {
    return [this](const std::string& partition) { news.tell(partition); };
  }

  News news;
  Sequence sequence;
  Settings settings;
  Broadcasts broadcasts;
  Boxes boxes;
  Posts posts;
  Snoozes snoozes;
};

class InboxSystem final : public house::System {
 public:
  std::string_view name() const override { return "inbox"; }
  std::string_view summary() const override {
    return "keeps the notifications of a product's users, with exact counts (REST, server-sent events)";
  }
  OptionGroup options() override {
    return {
        "Inbox",
        {{"--inbox-table", text_option(table_, "NAME"), "Table with the messages, counters and settings"}}};
  }
  std::vector<store::TablePlan> tables(const std::string& prefix) const override {
    return {plan_inbox_table(prefix + table_)};
  }
  void add_routes(net::Router& router) override { Api::add_routes({router, api_, house::Unlisted::refused}); }

  void start(house::House& house) override {
    const auto table = house.table_prefix + table_;
    running_ = std::make_unique<Running>(house, table);
    api_ = std::make_unique<Api>(Api::Parts{.settings = running_->settings,
                                            .boxes = running_->boxes,
                                            .posts = running_->posts,
                                            .snoozes = running_->snoozes,
                                            .news = running_->news,
                                            .secrets = house.secrets,
                                            .clock = house.clock});
    if (!house.shared) return;
    house.add_worker().run(
        [&news = running_->news, &store = house.store, table] { return news.look_for_others(store, table); });
  }
  void write_metrics(metrics::Exposition& out) const override {
    out.gauge("tabella_inbox_live_readers", "Answers that wait for messages",
              static_cast<double>(running_->news.waiting()));
  }
  void stop_waiting() override {
    if (running_) running_->news.stop();
  }

 private:
  std::string table_ = "tabella-inbox";
  std::unique_ptr<Running> running_;
  std::unique_ptr<Api> api_;
};

}  // namespace

std::unique_ptr<house::System> make_system() { return std::make_unique<InboxSystem>(); }

}  // namespace tabella::inbox
