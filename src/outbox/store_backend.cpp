#include "outbox/store_backend.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/text.h"
#include "base/time_text.h"
#include "outbox/counts.h"
#include "outbox/expiry.h"
#include "outbox/statements.h"
#include "store/batches.h"
#include "store/rows.h"

namespace tabella::outbox {

using item::Item;
using item::Type;
using store::Async;
using store::ErrorCode;
using store::Row;
using store::Statement;

namespace {

// Of the table, as the programs that share it know them; do not change.
constexpr const char* kEmailId = "Id";
constexpr const char* kStatus = "Status";
constexpr const char* kAttributes = "Attributes";
constexpr const char* kTtl = "TTL";
constexpr const char* kWorker = "Worker";

constexpr std::string_view kDuplicate = "DuplicateItem";
constexpr std::string_view kConditionFailed = "ConditionalCheckFailed";

void append_attributes(std::string& out, const Email& email, bool meta) {
  item::ContainerEncoder map(out, Type::M);
  const auto add = [&](std::string_view name, std::string_view text) {
    map.start_member(name);
    item::append_scalar(out, Type::S, text);
  };
  if (meta) add("Latest", name_of(email.status));
  add("EmlFilePath", email.eml_file_path);
  add("PayloadFilePath", email.payload_file_path);
  add("UpdatedAt", time_text(email.updated_at));
  add("Reason", email.reason);
  map.finish();
}

std::string attribute(item::ItemView row, std::string_view name) {
  const auto map = row.find(kAttributes);
  if (!map || map->type() != Type::M) return {};
  const auto value = map->member(name);
  return value && value->type() == Type::S ? std::string(value->content()) : std::string();
}

std::optional<int64_t> ttl_of(item::ItemView row) {
  auto value = row.find(kTtl);
  if (!value || value->type() != Type::N) {
    const auto map = row.find(kAttributes);
    value = map && map->type() == Type::M ? map->member(kTtl) : std::nullopt;
  }
  if (!value || value->type() != Type::N) return std::nullopt;
  return item::number_to_int(value->content());
}

Item email_key(const std::string& id, std::string_view status) {
  return Row().set(kEmailId, id).set(kStatus, status);
}

// Whether nothing is new but how long the row is kept.
bool is_same_visit(item::ItemView before, item::ItemView after) {
  const auto same = [&](std::string_view name) {
    const auto old_value = before.find(name);
    const auto new_value = after.find(name);
    return old_value.has_value() == new_value.has_value() &&
           (!old_value || old_value->bytes() == new_value->bytes());
  };
  return same(kAttributes) && same(kWorker);
}

bool is_cancelled(const store::Error& error) { return error.code == ErrorCode::transaction_canceled; }

bool stands_in_the_way(const store::Error& error, size_t statement, std::string_view code) {
  return statement < error.reasons.size() && error.reasons[statement].code == code;
}

std::vector<Statement> with_beside(std::vector<Statement> statements, const Beside& beside) {
  statements.insert(statements.end(), beside.before.begin(), beside.before.end());
  statements.insert(statements.end(), beside.after.begin(), beside.after.end());
  return statements;
}

}  // namespace

std::optional<Email> to_email(item::ItemView meta) {
  const auto status = state_named(attribute(meta, "Latest"));
  if (!status || store::text_of(meta, kStatus) != kMeta) return std::nullopt;
  return Email{.id = store::text_of(meta, kEmailId),
               .status = *status,
               .eml_file_path = attribute(meta, "EmlFilePath"),
               .payload_file_path = attribute(meta, "PayloadFilePath"),
               .updated_at = parse_time(attribute(meta, "UpdatedAt")).value_or(TimePoint{}),
               .reason = attribute(meta, "Reason"),
               .ttl = ttl_of(meta)};
}

std::optional<Change> to_change(const store::StreamRecord& record) {
  if (!record.new_image) return std::nullopt;
  const auto state = state_named(store::text_of(*record.new_image, kStatus));
  if (!state || (record.old_image && is_same_visit(*record.old_image, *record.new_image)))
    return std::nullopt;
  return Change{.position = {},
                .id = store::text_of(*record.new_image, kEmailId),
                .status = *state,
                .reason = attribute(*record.new_image, "Reason"),
                .at = record.created,
                .ours = record.new_image->find(kWorker).has_value()};
}

StoreBackend::StoreBackend(store::Store& store, const Clock& clock, std::string table, std::string counts,
                           std::string worker)
    : store_(store),
      clock_(clock),
      table_(std::move(table)),
      counts_(std::move(counts)),
      worker_(std::move(worker)) {}

// The index projects TTL beside what the layout names: the statement that reads it asks for it.
store::TablePlan StoreBackend::plan(const std::string& table) {
  auto plan = store::plan_table(table, {{kEmailId, Type::S}, {kStatus, Type::S}}, kTtl);
  plan.definition.global_indexes = {{.name = kStatusIndex,
                                     .key_schema = {{kStatus, store::KeyRole::hash}},
                                     .projection = store::ProjectionType::include,
                                     .non_key_attributes = std::vector<std::string>{kAttributes, kTtl}}};
  plan.definition.stream = store::StreamView::new_and_old_images;
  return plan;
}

std::string StoreBackend::next_write() {
  return worker_.empty() ? std::string() : fmt::format("{}/{}", worker_, ++writes_);
}

Statement StoreBackend::insert_row(const Email& email, std::string_view status,
                                   const std::string& write) const {
  const bool meta = status == kMeta;
  StatementBuilder insert("INSERT INTO \"" + table_ + "\" VALUE {'Id': ?, 'Status': ?, 'Attributes': ?");
  std::string attributes;
  append_attributes(attributes, email, meta);
  insert.with(email.id).with(status).with(item::ValueView(attributes));
  if (email.ttl) insert.append(", 'TTL': ?").with(*email.ttl);
  if (!meta && !write.empty()) insert.append(", 'Worker': ?").with(write);
  insert.append("}");
  return std::move(insert);
}

Statement StoreBackend::update_meta(const Moving& moving) const {
  StatementBuilder update("UPDATE \"" + table_ +
                          "\" SET Attributes.Latest=?, Attributes.UpdatedAt=?, Attributes.Reason=?");
  update.with(name_of(moving.to.status)).with(time_text(moving.to.updated_at)).with(moving.to.reason);
  if (moving.to.ttl) update.append(", TTL=?").with(*moving.to.ttl);
  if (!moving.to.eml_file_path.empty())
    update.append(", Attributes.EmlFilePath=?").with(moving.to.eml_file_path);
  update.append(" WHERE Id=? AND Status=? AND Attributes.Latest=?");
  update.with(moving.to.id).with(kMeta).with(name_of(moving.from.status));
  return std::move(update);
}

Statement StoreBackend::replace_row(const Moving& moving) const {
  StatementBuilder update("UPDATE \"" + table_ + "\" SET Attributes=?");
  std::string attributes;
  append_attributes(attributes, moving.to, false);
  update.with(item::ValueView(attributes));
  if (!moving.write.empty()) update.append(", Worker=?").with(moving.write);
  if (moving.to.ttl) update.append(", TTL=?").with(*moving.to.ttl);
  if (moving.write.empty()) update.append(" REMOVE Worker");
  update.append(" WHERE Id=? AND Status=?").with(moving.to.id).with(name_of(moving.to.status));
  return std::move(update);
}

Statement StoreBackend::delete_row(const std::string& id, State state) const {
  StatementBuilder remove("DELETE FROM \"" + table_ + "\" WHERE Id=? AND Status=?");
  remove.with(id).with(name_of(state));
  return std::move(remove);
}

Async<bool> StoreBackend::create(Email email, Beside beside) {
  email.updated_at = clock_.now();
  const auto write = next_write();
  const auto done = co_await store_.execute_transaction(
      {.statements = with_beside(
           {insert_row(email, kMeta, write), insert_row(email, name_of(email.status), write)}, beside)});
  if (done) co_return true;
  const auto& error = done.error();
  if (is_cancelled(error) &&
      (stands_in_the_way(error, 0, kDuplicate) || stands_in_the_way(error, 1, kDuplicate))) {
    if (!error.unsure) co_return false;
    co_return co_await was_written(email.id, email.status, write);
  }
  co_return std::unexpected(error);
}

Async<std::optional<Email>> StoreBackend::move(Email email, State to, std::string reason, Beside beside) {
  Moving moving{.from = email, .to = email, .write = next_write()};
  moving.to.status = to;
  moving.to.reason = std::move(reason);
  moving.to.updated_at = clock_.now();
  auto entering = to == State::ready || to == State::accepted ? Entering::again : Entering::first;
  for (int tries = 0; tries < 3; ++tries) {
    TABELLA_CO_ASSIGN(const auto hindrance, co_await try_move(moving, entering, beside));
    if (hindrance == Hindrance::none) co_return moving.to;
    if (hindrance == Hindrance::other_state) co_return std::nullopt;
    entering = hindrance == Hindrance::row_there ? Entering::again : Entering::first;
  }
  co_return store::fail(ErrorCode::transaction_conflict,
                        fmt::format("the rows of email {} change while it is moved", email.id));
}

Async<StoreBackend::Hindrance> StoreBackend::try_move(const Moving& moving, Entering entering,
                                                      const Beside& beside) {
  const auto state = name_of(moving.to.status);
  std::vector<Statement> statements = {update_meta(moving), entering == Entering::first
                                                                ? insert_row(moving.to, state, moving.write)
                                                                : replace_row(moving)};
  // The lock of others is that they can insert it.
  const auto from = moving.from.status;
  if ((from == State::processing && moving.to.status == State::ready) ||
      (from == State::intaking && moving.to.status == State::accepted))
    statements.push_back(delete_row(moving.to.id, from));
  const auto done =
      co_await store_.execute_transaction({.statements = with_beside(std::move(statements), beside)});
  if (done) co_return Hindrance::none;
  const auto& error = done.error();
  if (error.unsure) {
    TABELLA_CO_ASSIGN(const auto written, co_await was_written(moving.to.id, moving.to.status, moving.write));
    if (written) co_return Hindrance::none;
  }
  if (!is_cancelled(error)) co_return std::unexpected(error);
  if (stands_in_the_way(error, 0, kConditionFailed)) co_return Hindrance::other_state;
  if (stands_in_the_way(error, 1, kDuplicate)) co_return Hindrance::row_there;
  if (stands_in_the_way(error, 1, kConditionFailed)) co_return Hindrance::row_missing;
  co_return std::unexpected(error);
}

Async<bool> StoreBackend::was_written(const std::string& id, State state, const std::string& write) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_, .key = email_key(id, name_of(state)), .consistent = true}));
  co_return found.item&& store::text_of(*found.item, kWorker) == write;
}

Async<std::optional<Email>> StoreBackend::find(std::string id) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_, .key = email_key(id, kMeta), .consistent = true}));
  if (!found.item) co_return std::nullopt;
  co_return to_email(*found.item);
}

Async<std::vector<Item>> StoreBackend::rows_of(const std::string& id) {
  return store::query_all(store_, store::Query(table_).partition(kEmailId, id).consistent());
}

Async<std::vector<Step>> StoreBackend::history(std::string id) {
  TABELLA_CO_ASSIGN(const auto rows, co_await rows_of(id));
  std::vector<Step> steps;
  for (const auto& row : rows)
    if (const auto state = state_named(store::text_of(row, kStatus)))
      steps.push_back({.status = *state,
                       .reason = attribute(row, "Reason"),
                       .at = parse_time(attribute(row, "UpdatedAt")).value_or(TimePoint{})});
  // Other programs write whole seconds: within one, states follow each other as they always do.
  std::ranges::sort(steps, {}, [](const Step& step) {
    return std::pair(std::chrono::floor<std::chrono::seconds>(step.at), step.status);
  });
  co_return steps;
}

// The statement looks at all emails and keeps those in the state: after a while the page ends where it is.
Async<EmailPage> StoreBackend::list(State status, size_t limit, std::string from) {
  constexpr std::chrono::milliseconds kLongest{50};
  const auto until = std::chrono::steady_clock::now() + kLongest;
  const Statement select = StatementBuilder("SELECT Id, Status, Attributes, TTL FROM \"" + table_ +
                                            "\".\"StatusIndex\" WHERE Status=? AND Attributes.Latest =?")
                               .with(kMeta)
                               .with(name_of(status));
  EmailPage page{.next = std::move(from)};
  do {
    TABELLA_CO_ASSIGN(auto found,
                      co_await store_.execute_statement(
                          {.statement = select,
                           .limit = static_cast<int64_t>(limit - page.emails.size()),
                           .next_token = page.next.empty() ? std::nullopt : std::optional(page.next)}));
    for (const auto& row : found.items)
      if (auto email = to_email(row)) page.emails.push_back(std::move(*email));
    page.next = std::move(found.next_token).value_or("");
  } while (!page.next.empty() && page.emails.size() < limit && std::chrono::steady_clock::now() < until);
  co_return page;
}

Async<std::map<State, int64_t>> StoreBackend::counts() { return read_counts(store_, counts_); }

Async<void> StoreBackend::keep_until(std::string id, std::optional<int64_t> second) {
  TABELLA_CO_ASSIGN(
      auto keys,
      co_await store::query_all(
          store_, store::Query(table_).partition(kEmailId, id).consistent().only({kEmailId, kStatus})));
  co_return co_await set_expiry(store_, table_, std::move(keys), kTtl, second);
}

Async<bool> StoreBackend::remove(std::string id) {
  TABELLA_CO_ASSIGN(const auto rows, co_await rows_of(id));
  std::vector<store::BatchWrite> writes;
  for (const auto& row : rows)
    writes.push_back({.put = false, .item = email_key(id, store::text_of(row, kStatus))});
  TABELLA_CO_TRY(co_await store::write_all(store_, table_, std::move(writes)));
  co_return !rows.empty();
}

Async<std::string> StoreBackend::stream_arn() {
  TABELLA_CO_ASSIGN(const auto table, co_await store_.describe_table(table_));
  co_return table.stream_arn.value_or("");
}

Async<std::vector<std::string>> StoreBackend::open_iterators() {
  TABELLA_CO_ASSIGN(const auto arn, co_await stream_arn());
  std::vector<std::string> iterators;
  if (arn.empty()) co_return iterators;
  std::optional<std::string> start;
  do {
    TABELLA_CO_ASSIGN(auto stream, co_await store_.describe_stream({.arn = arn, .start = start}));
    for (const auto& shard : stream.shards) {
      if (shard.last) continue;
      TABELLA_CO_ASSIGN(auto iterator,
                        co_await store_.get_shard_iterator(
                            {.arn = arn, .shard = shard.id, .type = store::IteratorType::latest}));
      iterators.push_back(std::move(iterator));
    }
    start = std::move(stream.last_shard);
  } while (start);
  co_return iterators;
}

Async<Changes> StoreBackend::changes(std::string position, size_t most) {
  std::vector<std::string> iterators;
  if (position.empty()) {
    TABELLA_CO_ASSIGN(iterators, co_await open_iterators());
  } else {
    for (const auto part : split(position, '\n')) iterators.emplace_back(part);
  }
  Changes changes;
  bool closed = false;
  std::vector<std::string> next;
  for (auto& iterator : iterators) {
    TABELLA_CO_ASSIGN(auto records, co_await store_.get_records(
                                        {.iterator = iterator, .limit = static_cast<int64_t>(most)}));
    for (const auto& record : records.records)
      if (auto change = to_change(record)) changes.changes.push_back(std::move(*change));
    closed = closed || !records.next;
    if (records.next) next.push_back(std::move(*records.next));
  }
  // A shard that was closed goes on in others; whoever only watches begins with those that are open now.
  if (closed) {
    TABELLA_CO_ASSIGN(next, co_await open_iterators());
  }
  changes.position = fmt::format("{}", fmt::join(next, "\n"));
  for (auto& change : changes.changes) change.position = changes.position;
  co_return changes;
}

}  // namespace tabella::outbox
