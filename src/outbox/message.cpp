#include "outbox/message.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/text.h"
#include "outbox/statements.h"

namespace tabella::outbox {

using item::Item;
using item::Type;
using store::Row;
using store::Statement;

namespace {

constexpr size_t kPiece = 350 * 1024;  // DynamoDB takes items of 400 KB
constexpr std::string_view kAttemptPrefix = "attempt#";

constexpr std::array<std::string_view, 5> kResultNames = {"waiting", "delivered", "failed", "suppressed",
                                                          "unknown"};
constexpr std::array<std::string_view, 3> kPriorityNames = {"high", "normal", "low"};

template <class Enum, size_t N>
std::optional<Enum> value_named(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

std::vector<Recipient> read_recipients(std::string_view json) {
  JsonDocument document;
  std::vector<Recipient> recipients;
  const auto list = document.parse(json);
  if (!list || list->kind() != JsonValue::Kind::array) return recipients;
  for (JsonElements each(*list); each.next();) {
    const auto value = each.value();
    recipients.push_back(
        {.address = std::string(value.text("address")),
         .result = value_named<Result>(kResultNames, value.text("result")).value_or(Result::waiting),
         .reply = std::string(value.text("reply")),
         .may_have_it = value.find("may_have_it").has_value()});
  }
  return recipients;
}

std::string labels_json(const std::map<std::string, std::string>& labels) {
  std::string out;
  JsonObjectWriter object(out);
  for (const auto& [name, value] : labels) object.string(name, value);
  return out;
}

std::map<std::string, std::string> read_labels(std::string_view json) {
  JsonDocument document;
  std::map<std::string, std::string> labels;
  const auto object = document.parse(json);
  if (!object || !object->is_object()) return labels;
  for (JsonElements each(*object); each.next();)
    if (each.value().kind() == JsonValue::Kind::string) labels.emplace(each.key(), each.value().string());
  return labels;
}

std::string results_json(const std::vector<AttemptResult>& results) {
  std::string out;
  JsonArrayWriter list(out);
  for (const auto& result : results) {
    JsonObjectWriter one(list.element());
    one.string("address", result.address);
    one.string("outcome", result.outcome);
    if (!result.host.empty()) one.string("host", result.host);
    if (!result.step.empty()) one.string("step", result.step);
    if (!result.reply.empty()) one.string("reply", result.reply);
  }
  return out;
}

std::vector<AttemptResult> read_results(std::string_view json) {
  JsonDocument document;
  std::vector<AttemptResult> results;
  const auto list = document.parse(json);
  if (!list || list->kind() != JsonValue::Kind::array) return results;
  for (JsonElements each(*list); each.next();) {
    const auto value = each.value();
    results.push_back({.address = std::string(value.text("address")),
                       .outcome = std::string(value.text("outcome")),
                       .host = std::string(value.text("host")),
                       .step = std::string(value.text("step")),
                       .reply = std::string(value.text("reply"))});
  }
  return results;
}

}  // namespace

std::string_view name_of(Result result) { return kResultNames[static_cast<size_t>(result)]; }
std::string_view name_of(Priority priority) { return kPriorityNames[static_cast<size_t>(priority)]; }
std::optional<Priority> priority_named(std::string_view name) {
  return value_named<Priority>(kPriorityNames, name);
}

bool Message::any(Result result) const {
  return std::ranges::find(recipients, result, &Recipient::result) != recipients.end();
}
void Message::add_recipient(std::string address) {
  if (std::ranges::find(recipients, address, &Recipient::address) == recipients.end())
    recipients.push_back({.address = std::move(address)});
}

store::TablePlan messages_plan(const std::string& table) {
  auto plan = store::plan_table(table, {{"id", Type::S}, {"part", Type::S}}, "expires");
  plan.definition.attributes.push_back({"shard", Type::S});
  plan.definition.attributes.push_back({"due", Type::N});
  plan.definition.global_indexes = {
      {.name = kByDue,
       .key_schema = {{"shard", store::KeyRole::hash}, {"due", store::KeyRole::range}},
       .projection = store::ProjectionType::include,
       .non_key_attributes = std::vector<std::string>{"owner", "destination"}}};
  return plan;
}

std::string work_shard(Priority priority, int number) {
  return fmt::format("{}-{}", name_of(priority), number);
}
std::string work_shard(const Message& message) {
  return work_shard(message.priority, static_cast<int>(crc32(message.id) % kWorkShards));
}
std::vector<std::string> all_work_shards() {
  std::vector<std::string> shards;
  for (const auto priority : {Priority::high, Priority::normal, Priority::low})
    for (int number = 0; number < kWorkShards; ++number) shards.push_back(work_shard(priority, number));
  return shards;
}
std::string paused_shard(std::string_view destination) { return fmt::format("paused-{}", destination); }

item::Item message_key(const std::string& id) { return Row().set("id", id).set("part", "message"); }

item::Item to_item(const Message& message) {
  Row row;
  row.set("id", message.id).set("part", "message");
  row.set("created", epoch_milliseconds(message.created));
  row.set("door", message.door).set("from", message.from);
  row.set("recipients", recipients_json(message.recipients));
  row.set("destination", next_domain(message));
  row.set("subject", message.subject).set("message_id", message.message_id);
  if (!message.labels.empty()) row.set("labels", labels_json(message.labels));
  row.set("priority", name_of(message.priority));
  row.set("send_at", epoch_milliseconds(message.send_at));
  row.set("give_up_at", epoch_milliseconds(message.give_up_at));
  if (!message.callback.empty()) row.set("callback", message.callback);
  row.set("composed", message.composed).set("body", message.body).set("size", message.size);
  row.set("attempts", message.attempts).set("attempting", message.attempting);
  if (message.expires) row.set("expires", *message.expires);
  if (!message.shard.empty())
    row.set("shard", message.shard).set("due", message.due).set("owner", message.owner);
  return row;
}

std::optional<Message> to_message(item::ItemView row) {
  using namespace store;
  if (text_of(row, "part") != "message") return std::nullopt;
  Message message{.id = text_of(row, "id"),
                  .created = time_at(number_of(row, "created")),
                  .door = text_of(row, "door"),
                  .from = text_of(row, "from"),
                  .recipients = read_recipients(text_of(row, "recipients")),
                  .subject = text_of(row, "subject"),
                  .message_id = text_of(row, "message_id"),
                  .labels = read_labels(text_of(row, "labels")),
                  .priority = priority_named(text_of(row, "priority")).value_or(Priority::normal),
                  .send_at = time_at(number_of(row, "send_at")),
                  .give_up_at = time_at(number_of(row, "give_up_at")),
                  .callback = text_of(row, "callback"),
                  .composed = flag_of(row, "composed"),
                  .body = text_of(row, "body"),
                  .size = static_cast<size_t>(number_of(row, "size")),
                  .attempts = static_cast<int>(number_of(row, "attempts")),
                  .attempting = flag_of(row, "attempting"),
                  .shard = text_of(row, "shard"),
                  .due = number_of(row, "due"),
                  .owner = text_of(row, "owner")};
  if (row.find("expires")) message.expires = number_of(row, "expires");
  return message;
}

std::optional<DueMessage> to_due(item::ItemView row) {
  using namespace store;
  auto id = text_of(row, "id");
  if (id.empty()) return std::nullopt;
  return DueMessage{.id = std::move(id),
                    .shard = text_of(row, "shard"),
                    .due = number_of(row, "due"),
                    .owner = text_of(row, "owner"),
                    .destination = text_of(row, "destination")};
}

std::string make_body() { return fmt::format("{:016x}", random_bits()); }

std::string pieces_prefix(const Message& message, std::string_view kind) {
  return fmt::format("{}-{}#", kind, message.body);
}

std::vector<Item> to_pieces(const Message& message, std::string_view kind, std::string_view bytes) {
  std::vector<Item> pieces;
  do {
    Row row;
    row.set("id", message.id);
    row.set("part", fmt::format("{}{:04}", pieces_prefix(message, kind), pieces.size()));
    row.set("bytes", store::Binary{bytes.substr(0, kPiece)});
    if (message.expires) row.set("expires", *message.expires);
    pieces.push_back(row);
    bytes.remove_prefix(std::min(bytes.size(), kPiece));
  } while (!bytes.empty());
  return pieces;
}

Item to_item(const Message& message, const Attempt& attempt) {
  Row row;
  row.set("id", message.id).set("part", fmt::format("{}{:06}", kAttemptPrefix, attempt.number));
  row.set("outcome", attempt.outcome).set("worker", attempt.worker);
  row.set("began", epoch_milliseconds(attempt.began)).set("ended", epoch_milliseconds(attempt.ended));
  if (attempt.repeated) row.set("repeated", true);
  row.set("results", results_json(attempt.results));
  if (message.expires) row.set("expires", *message.expires);
  return row;
}

std::optional<Attempt> to_attempt(item::ItemView row) {
  using namespace store;
  const auto part = text_of(row, "part");
  if (!part.starts_with(kAttemptPrefix)) return std::nullopt;
  return Attempt{.number = std::atoi(part.c_str() + kAttemptPrefix.size()),
                 .outcome = text_of(row, "outcome"),
                 .began = time_at(number_of(row, "began")),
                 .ended = time_at(number_of(row, "ended")),
                 .worker = text_of(row, "worker"),
                 .repeated = flag_of(row, "repeated"),
                 .results = read_results(text_of(row, "results"))};
}

std::string recipients_json(const std::vector<Recipient>& recipients) {
  std::string out;
  JsonArrayWriter list(out);
  for (const auto& recipient : recipients) {
    JsonObjectWriter one(list.element());
    one.string("address", recipient.address);
    one.string("result", name_of(recipient.result));
    if (!recipient.reply.empty()) one.string("reply", recipient.reply);
    if (recipient.may_have_it) one.boolean("may_have_it", true);
  }
  return out;
}

std::string next_domain(const Message& message) {
  const auto waiting = std::ranges::find(message.recipients, Result::waiting, &Recipient::result);
  return waiting == message.recipients.end() ? std::string() : domain_of(waiting->address);
}

std::string domain_of(std::string_view address) {
  const auto at = address.rfind('@');
  return at == std::string_view::npos ? std::string() : lower(address.substr(at + 1));
}

namespace {

// Ends an UPDATE: where the work is, and which row it is about.
Statement finish_update(StatementBuilder update, const Message& message, std::string_view owner) {
  if (message.shard.empty())
    update.append(" REMOVE \"shard\" REMOVE due REMOVE \"owner\"");
  else
    update.append(", \"shard\"=?, due=?, \"owner\"=?")
        .with(message.shard)
        .with(message.due)
        .with(message.owner);
  update.append(" WHERE id=? AND part=?").with(message.id).with("message");
  if (!owner.empty()) update.append(" AND \"owner\"=?").with(owner);
  return std::move(update);
}

StatementBuilder begin_update(const std::string& table, const Message& message) {
  StatementBuilder update("UPDATE \"" + table +
                          "\" SET recipients=?, destination=?, attempts=?, attempting=?, give_up_at=?");
  update.with(recipients_json(message.recipients)).with(next_domain(message));
  update.with(message.attempts).with(message.attempting).with(epoch_milliseconds(message.give_up_at));
  return update;
}

}  // namespace

Statement update_statement(const std::string& table, const Message& message, std::string_view owner) {
  return finish_update(begin_update(table, message), message, owner);
}

Statement rewrite_statement(const std::string& table, const Message& message) {
  auto update = begin_update(table, message);
  update.append(", \"from\"=?, subject=?, message_id=?, labels=?, priority=?, send_at=?, callback=?");
  update.with(message.from).with(message.subject).with(message.message_id).with(labels_json(message.labels));
  update.with(name_of(message.priority)).with(epoch_milliseconds(message.send_at)).with(message.callback);
  update.append(", composed=?, body=?, \"size\"=?")
      .with(message.composed)
      .with(message.body)
      .with(message.size);
  return finish_update(std::move(update), message, {});
}

}  // namespace tabella::outbox
