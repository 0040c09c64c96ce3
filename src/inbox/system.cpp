#include "inbox/system.h"

#include "house/house.h"
#include "inbox/api.h"

namespace tabella::inbox {
namespace {

// What the system is made of, in the order in which one needs the other.
struct Running {
  Running(house::House& house, const std::string& table, SendEmail send_email)
      : sequence(house.clock),
        settings(house.store, house.clock, table),
        keys(settings, house.secrets),
        broadcasts(house.store, house.clock, table),
        boxes(house.store, house.clock, broadcasts, sequence, table),
        digests(house.store, house.clock, settings, house.schedule(), table),
        posts({.store = house.store,
               .clock = house.clock,
               .boxes = boxes,
               .sequence = sequence,
               .schedule = house.schedule(),
               .digests = digests},
              table, changed()),
        snoozes(boxes, house.clock, house.schedule(), changed()),
        channels({.settings = settings,
                  .boxes = boxes,
                  .posts = posts,
                  .keys = keys,
                  .schedule = house.schedule(),
                  .outbound = house.outbound,
                  .clock = house.clock},
                 std::move(send_email)) {}

  std::function<void(const std::string&)> changed() {
    return [this](const std::string& partition) { news.tell(partition); };
  }

  News news;
  Sequence sequence;
  Settings settings;
  TenantKeys keys;
  Broadcasts broadcasts;
  Boxes boxes;
  Digests digests;
  Posts posts;
  Snoozes snoozes;
  Channels channels;
};

class InboxSystem final : public house::System {
 public:
  explicit InboxSystem(std::function<SendEmail()> send_email) : send_email_(std::move(send_email)) {}

  std::string_view name() const override { return "inbox"; }
  std::string_view summary() const override {
    return "keeps the notifications of a product's users, with exact counts (REST, server-sent events)";
  }
  OptionGroup options() override {
    return {"Inbox",
            {{"--inbox-table", text_option(table_, "NAME"), "Table with the messages, counters and settings"},
             {"--inbox-poll", time_option(poll_, std::chrono::milliseconds{100}, std::chrono::minutes{1}),
              "How often is looked for what other processes publish to pages that are open here"}}};
  }
  std::vector<store::TablePlan> tables(const std::string& prefix) const override {
    return {plan_inbox_table(prefix + table_)};
  }
  void add_routes(net::Router& router) override { Api::add_routes({router, api_, house::Unlisted::refused}); }

  void start(house::House& house) override {
    const auto table = house.table_prefix + table_;
    running_ = std::make_unique<Running>(house, table, send_email_());
    api_ = std::make_unique<Api>(Api::Parts{.settings = running_->settings,
                                            .boxes = running_->boxes,
                                            .posts = running_->posts,
                                            .snoozes = running_->snoozes,
                                            .news = running_->news,
                                            .keys = running_->keys,
                                            .channels = running_->channels,
                                            .outbound = house.outbound,
                                            .clock = house.clock});
    // Others may be at it in any case: by the DynamoDB port, where the store is in this process.
    house.add_worker().run([&news = running_->news, &store = house.store, table, every = poll_] {
      return news.look_for_others(store, table, every);
    });
  }
  void write_metrics(metrics::Exposition& out) const override {
    out.gauge("tabella_inbox_live_readers", "Answers that wait for messages",
              static_cast<double>(running_->news.waiting()));
    running_->channels.write_metrics(out);
  }
  void stop_waiting() override {
    if (running_) running_->news.stop();
  }

 private:
  const std::function<SendEmail()> send_email_;
  std::string table_ = "tabella-inbox";
  std::chrono::milliseconds poll_{500};
  std::unique_ptr<Running> running_;
  std::unique_ptr<Api> api_;
};

}  // namespace

std::unique_ptr<house::System> make_system(std::function<SendEmail()> send_email) {
  return std::make_unique<InboxSystem>(std::move(send_email));
}

}  // namespace tabella::inbox
