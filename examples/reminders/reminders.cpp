// A whole system: reminders, set over HTTP, that fall due by a timer. It has a table, two routes, a kind of
// timer, an option and a metric; CONTRIBUTING.md, "A new system", goes through it.
#include "reminders/reminders.h"

#include "base/ids.h"
#include "house/house.h"
#include "house/routes.h"
#include "store/batches.h"
#include "store/rows.h"

namespace tabella::reminders {
namespace {

using boost::asio::awaitable;
using store::Row;

class Reminders {
 public:
  Reminders(house::House& house, std::chrono::milliseconds longest)
      : house_(house), longest_(longest), table_(house.table_prefix + "tabella-reminders") {
    house.schedule().on("reminder", [this](const schedule::Firing& firing) { return fall_due(firing); });
  }

  static void add_routes(house::Routes<Reminders> routes) {
    routes.add({"POST", "/reminders/{person}", "reminders:write", "Sets a reminder"}, &Reminders::add);
    routes.add({"GET", "/reminders/{person}", "reminders:read", "Shows which are due"}, &Reminders::list);
  }

  awaitable<void> add(net::Call& call) {
    auto body = call.json(R"({"text": "tea", "in": "3m"})");
    if (!body) co_return;
    const auto text = body->text("text");
    const auto at = house_.clock.now() + body->duration("in", longest_);
    body->no_others();
    if (call.answered()) co_return;
    const auto& person = call.path("person");
    const auto id = make_uuid();
    const auto put = co_await house_.store.put_item(
        store::Put(table_, Row().set("person", person).set("id", id).set("text", text)));
    if (!put) co_return house::refuse(call, put.error());
    const auto set = co_await house_.schedule().put({id, "reminder", at, person});
    if (!set) co_return house::refuse(call, set.error());
    JsonObjectWriter(call.answer_json(201)).string("id", id);
  }

  awaitable<void> list(net::Call& call) {
    const auto rows = co_await store::query_all(
        house_.store, store::Query(table_).partition("person", call.path("person")));
    if (!rows) co_return house::refuse(call, rows.error());
    JsonArrayWriter all(call.answer_json());
    for (const auto& row : *rows) {
      JsonObjectWriter one(all.element());
      one.string("text", store::text_of(row, "text"));
      one.boolean("due", store::flag_of(row, "due"));
    }
  }

  // May run twice for one timer: what is due stays due.
  awaitable<void> fall_due(const schedule::Firing& firing) {
    const auto key = Row().set("person", firing.timer.payload).set("id", firing.timer.id);
    const auto updated = co_await house_.store.update_item(store::Update(table_, key).set("due", true));
    if (!updated) throw std::runtime_error(updated.error().message);
    ++due;
  }
  metrics::Counter due{0};

 private:
  house::House& house_;
  const std::chrono::milliseconds longest_;
  const std::string table_;
};

class RemindersSystem final : public house::System {
 public:
  std::string_view name() const override { return "reminders"; }
  std::string_view summary() const override { return "reminds people of things"; }
  OptionGroup options() override {
    const auto longest = time_option(longest_, std::chrono::hours{0}, std::chrono::hours{24 * 365});
    return {"Reminders", {{"--reminders-longest", longest, "For how long a reminder may be set"}}};
  }
  std::vector<store::TablePlan> tables(const std::string& prefix) const override {
    using item::Type;
    return {store::plan_table(prefix + "tabella-reminders", {{"person", Type::S}, {"id", Type::S}})};
  }
  void add_routes(net::Router& router) override { Reminders::add_routes({router, reminders_}); }
  void start(house::House& house) override { reminders_ = std::make_unique<Reminders>(house, longest_); }
  void write_metrics(metrics::Exposition& out) const override {
    out.counter("tabella_reminders_due_total", "Reminders fallen due", double(reminders_->due));
  }

 private:
  std::chrono::milliseconds longest_ = std::chrono::hours{24 * 7};
  std::unique_ptr<Reminders> reminders_;
};

}  // namespace

std::unique_ptr<house::System> make_system() { return std::make_unique<RemindersSystem>(); }
}  // namespace tabella::reminders
