#include "engine/stream.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include <fmt/format.h>

#include "engine/facts.h"
#include "engine/schema.h"

namespace tabella::engine {
namespace {

using item::Value;

constexpr std::string_view kSequencePrefix = "10";
constexpr size_t kSequenceDigits = 21;

Value encode_shard(const Shard& shard) {
  FactWriter w;
  w.integer("first", static_cast<int64_t>(shard.first));
  w.integer("last", static_cast<int64_t>(shard.last));
  if (!shard.parent.empty()) w.text("parent", shard.parent);
  w.integer("bits", shard.bits);
  w.integer("prefix", static_cast<int64_t>(shard.prefix));
  w.time("opened", shard.opened);
  w.time("closed", shard.closed);
  return w.take();
}

Shard decode_shard(item::ValueView value) {
  const FactReader r(value);
  const auto number = [&](std::string_view name) {
    return static_cast<uint64_t>(r.integer(name).value_or(0));
  };
  return {.first = number("first"),
          .last = number("last"),
          .parent = r.text("parent"),
          .bits = static_cast<int>(number("bits")),
          .prefix = number("prefix"),
          .opened = r.time("opened").value_or(TimePoint{}),
          .closed = r.time("closed")};
}

}  // namespace

std::string Shard::name() const {
  return fmt::format("shardId-{:020}-{:08x}", epoch_milliseconds(opened), first);
}

std::string StreamSchema::arn() const { return fmt::format("{}/stream/{}", table_arn, label); }

const Shard* StreamSchema::shard(std::string_view name) const {
  const auto at = std::ranges::find_if(shards, [&](const Shard& s) { return s.name() == name; });
  return at == shards.end() ? nullptr : &*at;
}

const Shard* StreamSchema::open_shard(uint64_t hash) const {
  const auto at = std::ranges::find_if(shards, [&](const Shard& s) { return !s.closed && s.covers(hash); });
  return at == shards.end() ? nullptr : &*at;
}

Shard* StreamSchema::open_shard(uint64_t hash) {
  return const_cast<Shard*>(std::as_const(*this).open_shard(hash));
}

std::string sequence_text(uint64_t sequence) {
  return fmt::format("{}{:0{}}", kSequencePrefix, sequence, kSequenceDigits - kSequencePrefix.size());
}

std::optional<uint64_t> sequence_from(std::string_view text) {
  if (text.size() != kSequenceDigits || !text.starts_with(kSequencePrefix)) return std::nullopt;
  text.remove_prefix(kSequencePrefix.size());
  uint64_t sequence = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), sequence);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return sequence;
}

std::string stream_label(TimePoint at) {
  const auto ms = epoch_milliseconds(at);
  const std::time_t seconds = ms / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, ms % 1000);
}

std::string encode_stream(const StreamSchema& stream) {
  FactWriter w;
  w.integer("id", stream.id);
  w.text("table", stream.table);
  w.text("table_arn", stream.table_arn);
  w.text("label", stream.label);
  w.integer("view", static_cast<int>(stream.view));
  w.flag("enabled", stream.enabled);
  w.time("created", stream.created);
  w.value("keys", encode_keys(stream.key_schema));
  std::vector<Value> shards;
  for (const auto& shard : stream.shards) shards.push_back(encode_shard(shard));
  w.value("shards", Value::list(std::move(shards)));
  return item::encode(w.take());
}

StreamSchema decode_stream(std::string_view bytes) {
  const FactReader r{item::ValueView(bytes)};
  StreamSchema stream{.id = static_cast<uint32_t>(r.integer("id").value_or(0)),
                      .table = r.text("table"),
                      .table_arn = table_arn(r.text("table")),
                      .label = r.text("label"),
                      .view = static_cast<store::StreamView>(r.integer("view").value_or(0)),
                      .enabled = r.flag("enabled"),
                      .created = r.time("created").value_or(TimePoint{}),
                      .key_schema = decode_keys(r.find("keys"))};
  for (item::Elements e(*r.find("shards")); e.next();) stream.shards.push_back(decode_shard(e.value()));
  return stream;
}

}  // namespace tabella::engine
