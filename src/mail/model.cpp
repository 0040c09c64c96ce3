#include "mail/model.h"

#include <algorithm>

#include <fmt/format.h>

#include "item/number.h"
#include "mail/content.h"
#include "mail/mailhog.h"
#include "mime/utf8.h"
#include "store/rows.h"

namespace tabella::mail {

using item::ContainerEncoder;
using item::Item;
using item::Type;
using item::ValueView;
using store::Row;

namespace {

constexpr size_t kChunk = 350 * 1024;           // bytes of a message in one item
constexpr size_t kHead = 24 * 1024;             // of a message that does not fit into one
constexpr size_t kSurelyTooLarge = 200 * 1024;  // its item would hold it twice, at least
constexpr size_t kLargestItem = 390 * 1024;     // DynamoDB takes 400 KB

// mhdynamo has no empty strings, lists or maps: they are NULL.
void append_text(std::string& out, std::string_view text) {
  if (text.empty())
    item::append_null(out);
  else if (is_valid_utf8(text))
    item::append_scalar(out, Type::S, text);
  else
    item::append_scalar(out, Type::S, mime::to_valid_utf8(text));
}

template <class Range, class Append>
void append_list(std::string& out, const Range& range, Append append) {
  if (range.empty()) return item::append_null(out);
  ContainerEncoder list(out, Type::L);
  for (const auto& element : range) {
    list.start_element();
    append(element);
  }
  list.finish();
}

void append_path(std::string& out, const std::string& address) {
  const auto path = split_path(address);
  ContainerEncoder map(out, Type::M);
  map.start_member("Relays");
  append_list(out, path.relays, [&](const std::string& relay) { append_text(out, relay); });
  map.start_member("Mailbox");
  append_text(out, path.mailbox);
  map.start_member("Domain");
  append_text(out, path.domain);
  map.start_member("Params");
  item::append_null(out);
  map.finish();
}

void append_mime(std::string& out, const Content& content);

void append_content(std::string& out, const Content& content, bool with_parts) {
  ContainerEncoder map(out, Type::M);
  map.start_member("Headers");
  if (content.headers.empty()) {
    item::append_null(out);
  } else {
    ContainerEncoder headers(out, Type::M);
    for (const auto& [name, values] : content.headers) {
      headers.start_member(name);
      append_list(out, values, [&](const std::string& value) { append_text(out, value); });
    }
    headers.finish();
  }
  map.start_member("Body");
  append_text(out, content.body);
  map.start_member("Size");
  item::append_scalar(out, Type::N, item::encode_int(static_cast<int64_t>(content.size)));
  map.start_member("MIME");
  if (with_parts)
    append_mime(out, content);
  else
    item::append_null(out);
  map.finish();
}

void append_mime(std::string& out, const Content& content) {
  if (!content.parts) return item::append_null(out);
  ContainerEncoder map(out, Type::M);
  map.start_member("Parts");
  append_list(out, *content.parts, [&](const Content& part) { append_content(out, part, true); });
  map.finish();
}

void append_msg(std::string& out, const Message& message, const Content& content, std::string_view data) {
  ContainerEncoder map(out, Type::M);
  map.start_member("ID");
  append_text(out, short_id(message.id));
  map.start_member("Created");
  append_text(out, time_text(message.created));
  map.start_member("From");
  append_path(out, message.from);
  map.start_member("To");
  append_list(out, message.to, [&](const std::string& address) { append_path(out, address); });
  map.start_member("Content");
  append_content(out, content, false);
  map.start_member("MIME");
  append_mime(out, content);
  map.start_member("Raw");
  ContainerEncoder raw(out, Type::M);
  raw.start_member("From");
  append_text(out, message.from);
  raw.start_member("To");
  append_list(out, message.to, [&](const std::string& address) { append_text(out, address); });
  raw.start_member("Data");
  append_text(out, data);
  raw.start_member("Helo");
  append_text(out, message.helo);
  raw.finish();
  map.finish();
}

void add_keys_and_ours(Row& row, const Message& message) {
  row.set(kPartition, partition_of(message.created, message.granularity));
  row.set(kId, message.id);
  row.set("Expires", message.expires);
  row.set("Size", message.raw.size());
  if (!message.user.empty()) row.set("User", mime::to_valid_utf8(message.user));
  if (!message.peer.empty()) row.set("Peer", message.peer);
  if (!message.tags.empty()) row.set(kTags, message.tags);
}

// Raw.Data is what came, without the last line end; nothing if it cannot be had back from that.
std::optional<std::string_view> data_of(std::string_view raw) {
  if (!raw.ends_with("\r\n") || !is_valid_utf8(raw)) return std::nullopt;
  return raw.substr(0, raw.size() - 2);
}

Item small_item(const Message& message, const std::string& hostname) {
  const auto data = data_of(message.raw);
  std::string_view without_end = message.raw;
  if (without_end.ends_with("\r\n")) without_end.remove_suffix(2);
  auto content = parse_content(without_end);
  add_trace(content, message, hostname);
  Row row;
  add_keys_and_ours(row, message);
  row.set_with("Msg", [&](std::string& out) { append_msg(out, message, content, without_end); });
  if (!data) row.set("Bytes", store::Binary(message.raw));
  return row;
}

// The keys of a chunk.
Row chunk_row(const std::string& body, size_t number) {
  return Row().set(kPartition, "chunks|" + body).set(kId, fmt::format("{:06}", number));
}

Item large_item(const Message& message, const std::string& hostname) {
  const auto head = std::string_view(message.raw).substr(0, kHead);
  auto content = parse_content(head);
  content.parts.reset();
  content.size = message.raw.size();
  add_trace(content, message, hostname);
  Row row;
  add_keys_and_ours(row, message);
  row.set_with("Msg", [&](std::string& out) { append_msg(out, message, content, {}); });
  row.set("Head", store::Binary(head));
  row.set("Chunks", message.chunks);
  row.set("Body", message.body);
  return row;
}

std::string text_in(ValueView map, std::string_view name) {
  const auto value = map.member(name);
  return value && value->type() == Type::S ? std::string(value->content()) : std::string();
}

void read_raw(ValueView msg, Message& message) {
  const auto raw = msg.member("Raw");
  if (!raw || raw->type() != Type::M) return;
  message.from = text_in(*raw, "From");
  message.helo = text_in(*raw, "Helo");
  message.raw = text_in(*raw, "Data") + "\r\n";
  const auto to = raw->member("To");
  if (!to || to->type() != Type::L) return;
  for (item::Elements elements(*to); elements.next();)
    if (elements.value().type() == Type::S) message.to.emplace_back(elements.value().content());
}

std::optional<Granularity> granularity_of(std::string_view partition) {
  if (partition.size() == 10) return Granularity::day;
  if (partition.size() == 12) return Granularity::half_day;
  if (partition.size() == 13) return Granularity::hour;
  return std::nullopt;
}

}  // namespace

store::TablePlan messages_plan(const std::string& table) {
  auto plan = store::plan_table(table, {{kPartition, Type::S}, {kId, Type::S}}, "Expires");
  plan.definition.stream = store::StreamView::keys_only;  // mail/reconciler.h
  return plan;
}

std::optional<Item> to_item(const Message& message, const std::string& hostname) {
  if (message.chunks > 0) return large_item(message, hostname);
  if (message.raw.size() > kSurelyTooLarge) return std::nullopt;
  auto item = small_item(message, hostname);
  return item.size() <= kLargestItem ? std::optional(std::move(item)) : std::nullopt;
}

std::vector<Item> to_chunks(const Message& message) {
  std::vector<Item> chunks;
  for (size_t at = 0; at < message.raw.size(); at += kChunk) {
    auto row = chunk_row(message.body, chunks.size());
    row.set("Expires", message.expires);
    row.set("Data", store::Binary(std::string_view(message.raw).substr(at, kChunk)));
    chunks.push_back(row);
  }
  return chunks;
}

std::optional<Message> to_message(item::ItemView row) {
  Message message;
  message.id = store::text_of(row, kId);
  const auto created = created_of(message.id);
  const auto granularity = granularity_of(store::text_of(row, kPartition));
  const auto msg = row.find("Msg");
  if (!created || !granularity || (msg && msg->type() != Type::M)) return std::nullopt;
  message.created = *created;
  message.granularity = *granularity;
  message.expires = store::number_of(row, "Expires");
  message.user = store::text_of(row, "User");
  message.peer = store::text_of(row, "Peer");
  if (msg) read_raw(*msg, message);
  message.chunks = static_cast<size_t>(store::number_of(row, "Chunks"));
  message.body = store::text_of(row, "Body");
  if (const auto bytes = row.find(message.chunks > 0 ? "Head" : "Bytes"); bytes && bytes->type() == Type::B)
    message.raw = bytes->content();
  message.whole = message.chunks == 0;
  // mhdynamo's have no size of their own; without the message there is nothing else to go by.
  message.size =
      message.whole && msg ? message.raw.size() : static_cast<uint64_t>(store::number_of(row, "Size"));
  message.read = store::flag_of(row, kRead);
  if (const auto tags = row.find(kTags); tags && tags->type() == Type::SS)
    for (item::Elements elements(*tags); elements.next();) message.tags.emplace_back(elements.content());
  std::ranges::sort(message.tags);
  return message;
}

std::optional<MessageKey> to_key(item::ItemView row) {
  const auto partition = store::text_of(row, kPartition);
  auto id = store::text_of(row, kId);
  const auto created = created_of(id);
  const auto granularity = granularity_of(partition);
  if (!created || !granularity || partition_of(*created, *granularity) != partition) return std::nullopt;
  return MessageKey{.id = std::move(id), .created = *created, .granularity = *granularity};
}

std::vector<std::string> without_message() {
  return {kPartition, kId, "Expires", "Chunks", "Body", "Size", kTags, kRead};
}

Item key_of(const std::string& id, Granularity granularity) {
  return Row().set(kPartition, partition_of(created_of(id).value_or(0), granularity)).set(kId, id);
}

std::vector<Item> chunk_keys(const Message& message) {
  std::vector<Item> keys;
  for (size_t i = 0; i < message.chunks; ++i) keys.push_back(chunk_row(message.body, i));
  return keys;
}

std::string chunk_bytes(item::ItemView row) { return store::binary_of(row, "Data"); }

std::string received_value(const Message& message, const std::string& hostname) {
  return fmt::format("from {} by {} (Tabella)\r\n          id {}; {}", message.helo, hostname,
                     short_id(message.id), mail_date(message.created));
}

std::string trace_headers(const Message& message, const std::string& hostname) {
  return fmt::format("Return-Path: <{}>\r\nReceived: {}\r\n", message.from,
                     received_value(message, hostname));
}

}  // namespace tabella::mail
