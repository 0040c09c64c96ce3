// Long random sequences of operations on the engine and on the model beside each other; every answer, every
// index and every stream is compared, over restarts and while time passes. TABELLA_MODEL_STEPS and
// TABELLA_MODEL_SEED make it longer or other.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/verify.h"
#include "item/number.h"
#include "model/model.h"
#include "support/folder.h"
#include "support/run.h"

namespace tabella::model {
namespace {

using item::Value;
using test::run;

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stoll(text) : otherwise;
}

class ModelTest : public testing::TestWithParam<int> {
 protected:
  ModelTest() : random_(static_cast<unsigned>(from_environment("TABELLA_MODEL_SEED", 0) + GetParam())) {
    open();
    store::CreateTableRequest request;
    auto& d = request.definition;
    d.name = "t";
    d.billing_mode = store::BillingMode::pay_per_request;
    d.attributes = {{"pk", item::Type::S}, {"sk", item::Type::S}, {"g", item::Type::S}, {"n", item::Type::N}};
    d.key_schema = {{"pk", store::KeyRole::hash}, {"sk", store::KeyRole::range}};
    store::IndexDefinition global{.name = "by_g", .projection = store::ProjectionType::all};
    global.key_schema = {{"g", store::KeyRole::hash}, {"n", store::KeyRole::range}};
    store::IndexDefinition local{.name = "by_n", .projection = store::ProjectionType::keys_only};
    local.key_schema = {{"pk", store::KeyRole::hash}, {"n", store::KeyRole::range}};
    d.global_indexes = {global};
    d.local_indexes = {local};
    d.stream = store::StreamView::new_and_old_images;
    stream_ = *run(engine_->create_table(request))->stream_arn;
    EXPECT_TRUE(run(engine_->update_time_to_live({.table = "t", .enabled = true, .attribute = "ttl"})));
  }
  void open() {
    engine_.reset();
    engine_ = std::make_unique<engine::Engine>(
        engine::Engine::Options{.folder = folder_.path(), .durability = engine::Durability::relaxed}, clock_);
  }

  // --- chance

  int64_t below(int64_t most) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(most)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  std::string any_pk() { return fmt::format("p{}", below(5)); }
  std::string any_sk() {
    return fmt::format("{}{}", below(3), std::string(static_cast<size_t>(below(3)), 'x'));
  }
  std::string any_g() { return fmt::format("g{}", below(3)); }
  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::seconds>(clock_.now().time_since_epoch()).count();
  }
  int64_t any_ttl() { return now() + 10 + below(100); }

  Row any_row() {
    Row row{.pk = any_pk(), .sk = any_sk()};
    if (one_in(2)) row.n = below(10) - 5;
    if (one_in(2)) row.s = std::string(static_cast<size_t>(below(30)), 's');
    if (one_in(2)) row.g = any_g();
    if (one_in(3)) row.l = std::vector<int64_t>{below(9), below(9)};
    if (one_in(4)) row.ttl = any_ttl();
    return row;
  }

  Condition any_condition() {
    if (one_in(2)) return {};
    return {.kind = static_cast<Condition::Kind>(1 + below(4)), .n = below(8), .g = any_g()};
  }

  Change any_change() {
    Change change{.kind = static_cast<Change::Kind>(below(6)),
                  .row = any_row(),
                  .n = below(5),
                  .text = any_g(),
                  .ttl = any_ttl(),
                  .condition = any_condition()};
    return change;
  }

  // --- the engine's words for a change

  static std::string update_of(const Change& change) {
    switch (change.kind) {
      case Change::Kind::set: return "SET s = :t, g = :t, #ttl = :ttl";
      case Change::Kind::add: return "ADD n :n";
      case Change::Kind::append: return "SET l = list_append(if_not_exists(l, :empty), :l)";
      case Change::Kind::forget: return "REMOVE g, #ttl";
      case Change::Kind::put:
      case Change::Kind::remove:
      case Change::Kind::check: break;
    }
    return {};
  }

  static bool is_update(const Change& change) { return !update_of(change).empty(); }

  static store::ExpressionAttributes attributes_of(const Change& change) {
    store::ExpressionAttributes out;
    auto values = Value::map();
    const auto& c = change.condition;
    if (c.kind == Condition::Kind::n_less) values.set_member(":cn", Value::integer(c.n));
    if (c.kind == Condition::Kind::g_is) values.set_member(":cg", Value::string(c.g));
    if (change.kind == Change::Kind::set) {
      values.set_member(":t", Value::string(change.text));
      values.set_member(":ttl", Value::integer(change.ttl));
    }
    if (change.kind == Change::Kind::add) values.set_member(":n", Value::integer(change.n));
    if (change.kind == Change::Kind::append) {
      values.set_member(":l", Value::list({Value::integer(change.n)}));
      values.set_member(":empty", Value::list({}));
    }
    if (!values.elements().empty()) out.values = item::encode_item(values);
    if (change.kind == Change::Kind::set || change.kind == Change::Kind::forget)
      out.names = store::Names{{"#ttl", "ttl"}};
    return out;
  }

  static std::optional<std::string> condition_of(const Change& change) {
    const auto text = change.condition.text();
    return text.empty() ? std::nullopt : std::optional(text);
  }

  // --- steps

  void write_one() {
    const auto change = any_change();
    const auto before = model_.get(Model::key_of(change.row));
    const bool should = model_.apply(change);
    const auto after = model_.get(Model::key_of(change.row));
    store::WriteOptions options{.condition = condition_of(change), .attributes = attributes_of(change)};
    options.return_old_on_failure = true;
    store::Result<store::WriteResult> result;
    std::optional<Row> expected;
    if (is_update(change)) {
      options.return_values = store::ReturnValues::all_new;
      expected = after;
      result = run(engine_->update_item(
          {.table = "t", .key = to_key(change.row), .update = update_of(change), .options = options}));
    } else {
      options.return_values = store::ReturnValues::all_old;
      expected = before;
      result = change.kind == Change::Kind::put
                   ? run(engine_->put_item({.table = "t", .item = to_item(change.row), .options = options}))
                   : run(engine_->delete_item({.table = "t", .key = to_key(change.row), .options = options}));
    }
    ASSERT_EQ(result.has_value(), should) << show(before) << " " << condition_of(change).value_or("");
    if (should) {
      ASSERT_EQ(row_of(result->attributes), show(expected));
    } else {
      ASSERT_EQ(result.error().code, store::ErrorCode::conditional_check_failed);
      ASSERT_EQ(row_of(result.error().item), show(before));
    }
  }

  void write_transaction() {
    std::vector<Change> changes;
    for (int64_t i = 1 + below(4); i > 0; --i) {
      auto change = any_change();
      if (one_in(5)) change.kind = Change::Kind::check;
      if (change.kind == Change::Kind::check && change.condition.kind == Condition::Kind::none)
        change.condition.kind = Condition::Kind::present;
      if (std::ranges::none_of(
              changes, [&](const Change& c) { return Model::key_of(c.row) == Model::key_of(change.row); }))
        changes.push_back(std::move(change));
    }
    store::TransactWriteItemsRequest request;
    std::string codes;
    for (const auto& change : changes) {
      using Kind = store::TransactWrite::Kind;
      const auto kind = is_update(change)                     ? Kind::update
                        : change.kind == Change::Kind::put    ? Kind::put
                        : change.kind == Change::Kind::remove ? Kind::remove
                                                              : Kind::check;
      store::TransactWrite write{.kind = kind,
                                 .table = "t",
                                 .item = kind == Kind::put ? to_item(change.row) : to_key(change.row),
                                 .condition = condition_of(change),
                                 .attributes = attributes_of(change)};
      if (is_update(change)) write.update = update_of(change);
      request.writes.push_back(std::move(write));
      codes += model_.can_apply(change) ? "None " : "ConditionalCheckFailed ";
    }
    const bool should = codes.find("Failed") == std::string::npos;
    if (should)
      for (const auto& change : changes) model_.apply(change);
    if (one_in(3)) request.token = fmt::format("token-{}", ++tokens_);
    const auto again = request;
    const auto result = run(engine_->transact_write_items(std::move(request)));
    ASSERT_EQ(result.has_value(), should) << codes;
    std::string found;
    if (!result)
      for (const auto& reason : result.error().reasons) found += reason.code + " ";
    ASSERT_EQ(found, should ? "" : codes);
    if (should && again.token) {
      ASSERT_TRUE(run(engine_->transact_write_items(again)));
    }
  }

  void write_batch() {
    store::BatchWriteItemRequest request;
    auto& writes = request.tables.emplace_back("t", std::vector<store::BatchWrite>()).second;
    std::vector<Model::Key> seen;
    for (int i = 0; i < 5; ++i) {
      const Change change{.kind = one_in(3) ? Change::Kind::remove : Change::Kind::put, .row = any_row()};
      if (std::ranges::find(seen, Model::key_of(change.row)) != seen.end()) continue;
      seen.push_back(Model::key_of(change.row));
      model_.apply(change);
      const bool put = change.kind == Change::Kind::put;
      writes.push_back({.put = put, .item = put ? to_item(change.row) : to_key(change.row)});
    }
    ASSERT_TRUE(run(engine_->batch_write_item(std::move(request))));
  }

  void write_statement() {
    const auto row = any_row();
    const auto key = Model::key_of(row);
    const auto old = model_.get(key);
    const auto where = fmt::format("pk = '{}' AND sk = '{}'", row.pk, row.sk);
    switch (below(3)) {
      case 0: {
        const auto result =
            statement(fmt::format("INSERT INTO t VALUE {{'pk':'{}','sk':'{}','n':{}}}", row.pk, row.sk, 7));
        ASSERT_EQ(result.has_value(), !old);
        if (!old) model_.apply({.row = {.pk = row.pk, .sk = row.sk, .n = 7}});
        return;
      }
      case 1: {
        const auto result =
            statement("UPDATE t SET s = 'q' REMOVE g WHERE " + where + " RETURNING ALL NEW *");
        ASSERT_EQ(result.has_value(), old.has_value());
        if (!old) return;
        auto now = *old;
        now.s = "q";
        now.g.reset();
        model_.apply({.row = now});
        ASSERT_EQ(rows_of(result->items), shown({now}));
        return;
      }
      default: {
        const auto result = statement("DELETE FROM t WHERE " + where + " RETURNING ALL OLD *");
        ASSERT_TRUE(result);
        ASSERT_EQ(rows_of(result->items), old ? shown({*old}) : std::vector<std::string>{});
        model_.apply({.kind = Change::Kind::remove, .row = row});
      }
    }
  }

  store::Result<store::ExecuteStatementResult> statement(std::string text,
                                                         std::optional<std::string> token = {},
                                                         std::optional<int64_t> limit = {}) {
    return run(engine_->execute_statement(
        {.statement = {.text = std::move(text)}, .limit = limit, .next_token = std::move(token)}));
  }

  void read_one() {
    const auto row = any_row();
    const auto found = run(engine_->get_item({.table = "t", .key = to_key(row), .consistent = true}));
    ASSERT_TRUE(found);
    ASSERT_EQ(row_of(found->item), show(model_.get(Model::key_of(row))));
    store::TransactGetItemsRequest request;
    request.gets.push_back({.table = "t", .key = to_key(row)});
    ASSERT_EQ(row_of(run(engine_->transact_get_items(request))->responses[0]),
              show(model_.get(Model::key_of(row))));
  }

  void query_partition() {
    const auto pk = any_pk();
    const auto a = any_sk();
    const auto b = std::max(a, any_sk());
    auto expected = model_.partition(pk);
    store::QueryRequest request;
    request.options.table = "t";
    auto values = Value::map();
    values.set_member(":pk", Value::string(pk));
    std::string key = "pk = :pk";
    std::string where = fmt::format("pk = '{}'", pk);
    const auto keep = [&](auto test) {
      std::erase_if(expected, [&](const Row& row) { return !test(row.sk); });
    };
    const auto with = [&](std::string_view test, std::string_view sql) {
      key += fmt::format(" AND {}", test);
      where += fmt::format(" AND {}", sql);
      values.set_member(":a", Value::string(a));
    };
    switch (below(6)) {
      case 0: break;
      case 1:
        with("sk = :a", fmt::format("sk = '{}'", a));
        keep([&](const auto& sk) { return sk == a; });
        break;
      case 2:
        with("sk < :a", fmt::format("sk < '{}'", a));
        keep([&](const auto& sk) { return sk < a; });
        break;
      case 3:
        with("sk >= :a", fmt::format("sk >= '{}'", a));
        keep([&](const auto& sk) { return sk >= a; });
        break;
      case 4:
        with("sk BETWEEN :a AND :b", fmt::format("sk BETWEEN '{}' AND '{}'", a, b));
        values.set_member(":b", Value::string(b));
        keep([&](const auto& sk) { return sk >= a && sk <= b; });
        break;
      default:
        with("begins_with(sk, :a)", fmt::format("begins_with(sk, '{}')", a));
        keep([&](const auto& sk) { return sk.starts_with(a); });
    }
    request.forward = one_in(2);
    if (!request.forward) std::ranges::reverse(expected);
    if (one_in(2)) request.options.limit = 1 + below(4);
    request.key_condition = key;
    request.options.attributes.values = item::encode_item(values);
    ASSERT_EQ(pages(request, [&](const auto& r) { return run(engine_->query(r)); }), shown(expected)) << key;

    const auto order = request.forward ? "" : " ORDER BY sk DESC";
    std::vector<std::string> found;
    std::optional<std::string> token;
    do {
      const auto page =
          statement(fmt::format("SELECT * FROM t WHERE {}{}", where, order), token, request.options.limit);
      ASSERT_TRUE(page) << page.error().message;
      for (const auto& row : rows_of(page->items)) found.push_back(row);
      token = page->next_token;
    } while (token);
    ASSERT_EQ(found, shown(expected)) << where;
  }

  void query_index() {
    const auto g = any_g();
    store::QueryRequest request;
    request.options.table = "t";
    request.options.index = "by_g";
    if (one_in(2)) request.options.limit = 1 + below(4);
    request.key_condition = "g = :g";
    auto values = Value::map();
    values.set_member(":g", Value::string(g));
    request.options.attributes.values = item::encode_item(values);
    const auto found = pages(request, [&](const auto& r) { return run(engine_->query(r)); });
    // Entries with the same sort key come in whatever order.
    const auto expected = model_.in_group(g);
    ASSERT_EQ(sorted(found), sorted(shown(expected)));
    store::ScanRequest local;
    local.options.table = "t";
    local.options.index = "by_n";
    const auto with_n = std::ranges::count_if(model_.all(), [](const Row& row) { return row.n.has_value(); });
    ASSERT_EQ(pages(local, [&](const auto& r) { return run(engine_->scan(r)); }).size(),
              static_cast<size_t>(with_n));
  }

  void scan_all() {
    std::vector<std::string> found;
    const int64_t segments = 1 + below(4);
    for (int64_t segment = 0; segment < segments; ++segment) {
      store::ScanRequest request{.segment = segment, .total_segments = segments};
      request.options.table = "t";
      if (one_in(2)) request.options.limit = 1 + below(7);
      for (auto& row : pages(request, [&](const auto& r) { return run(engine_->scan(r)); }))
        found.push_back(row);
    }
    ASSERT_EQ(sorted(found), sorted(shown(model_.all())));
    ASSERT_EQ(run(engine_->describe_table("t"))->item_count, static_cast<int64_t>(model_.all().size()));
  }

  void let_time_pass() {
    clock_.advance(std::chrono::seconds{1 + below(30)});
    model_.expire(now());
    for (int tries = 0; tries < 2000; ++tries) {
      if (run(engine_->describe_table("t"))->item_count == static_cast<int64_t>(model_.all().size())) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    FAIL() << "what was due is not gone";
  }

  void compare_streams() {
    std::map<Model::Key, std::vector<Record>> found;
    const auto stream = run(engine_->describe_stream({.arn = stream_}));
    ASSERT_TRUE(stream);
    for (const auto& shard : stream->shards) {
      std::optional<std::string> next =
          *run(engine_->get_shard_iterator({.arn = stream_, .shard = shard.id}));
      while (next) {
        const auto page = run(engine_->get_records({.iterator = *next, .limit = 1 + below(500)}));
        ASSERT_TRUE(page);
        for (const auto& r : page->records) {
          const auto image = [](const auto& item) {
            return item ? std::optional(to_row(*item)) : std::nullopt;
          };
          found[Model::key_of(to_row(r.keys))].push_back(
              {image(r.old_image), image(r.new_image), r.by_service});
        }
        next = page->records.empty() ? std::nullopt : page->next;
      }
    }
    ASSERT_TRUE(found == model_.records());
  }

  // --- words for comparing

  static std::string row_of(const std::optional<item::Item>& item) {
    return show(item ? std::optional(to_row(*item)) : std::nullopt);
  }
  static std::vector<std::string> rows_of(const std::vector<item::Item>& items) {
    std::vector<std::string> rows;
    for (const auto& item : items) rows.push_back(show(to_row(item)));
    return rows;
  }
  static std::vector<std::string> shown(const std::vector<Row>& rows) {
    std::vector<std::string> out;
    for (const auto& row : rows) out.push_back(show(row));
    return out;
  }
  static std::vector<std::string> sorted(std::vector<std::string> rows) {
    std::ranges::sort(rows);
    return rows;
  }
  template <class Request, class Call>
  static std::vector<std::string> pages(Request request, Call call) {
    std::vector<std::string> rows;
    while (true) {
      const auto page = call(request);
      if (!page) return {page.error().message};
      for (auto& row : rows_of(page->items)) rows.push_back(std::move(row));
      if (!page->last_key) return rows;
      request.options.start_key = page->last_key;
    }
  }

  void step() {
    switch (below(20)) {
      case 0: return query_index();
      case 1: return scan_all();
      case 2: return read_one();
      case 3:
      case 4: return query_partition();
      case 5:
      case 6: return write_batch();
      case 7:
      case 8:
      case 9: return write_transaction();
      case 10: return write_statement();
      default: return write_one();
    }
  }

  std::mt19937 random_;
  test::Folder folder_;
  ManualClock clock_;
  std::unique_ptr<engine::Engine> engine_;
  std::string stream_;
  Model model_;
  int tokens_ = 0;
};

TEST_P(ModelTest, TheEngineDoesWhatTheModelSays) {
  const auto steps = from_environment("TABELLA_MODEL_STEPS", 3000);
  for (int64_t i = 1; i <= steps && !HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("step {}", i));
    step();
    if (i % 200 == 0) let_time_pass();
    if (i % 700 == 0) open();
    if (i % 1000 == 0) compare_streams();
  }
  compare_streams();
  engine_->close();
  engine_.reset();
  const auto report = engine::verify(folder_.path(), {});
  EXPECT_TRUE(report.first_problems.empty()) << report.first_problems[0];
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, testing::Range(1, 7));

}  // namespace
}  // namespace tabella::model
