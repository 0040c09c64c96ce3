#include "model/model.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "item/number.h"

namespace tabella::model {

using item::Value;

namespace {

int64_t integer(item::ValueView value) { return item::number_to_int(value.content()).value(); }

Value list_of(const std::vector<int64_t>& numbers) {
  std::vector<Value> values;
  for (const auto n : numbers) values.push_back(Value::integer(n));
  return Value::list(std::move(values));
}

}  // namespace

item::Item to_item(const Row& row) {
  auto map = Value::map();
  map.set_member("pk", Value::string(row.pk));
  map.set_member("sk", Value::string(row.sk));
  if (row.n) map.set_member("n", Value::integer(*row.n));
  if (row.s) map.set_member("s", Value::string(*row.s));
  if (row.g) map.set_member("g", Value::string(*row.g));
  if (row.l) map.set_member("l", list_of(*row.l));
  if (row.ttl) map.set_member("ttl", Value::integer(*row.ttl));
  return item::encode_item(map);
}

item::Item to_key(const Row& row) { return to_item({.pk = row.pk, .sk = row.sk}); }

Row to_row(item::ItemView item) {
  Row row;
  for (item::Attributes a(item); a.next();) {
    const auto name = a.name();
    const auto value = a.value();
    if (name == "pk") row.pk = value.content();
    if (name == "sk") row.sk = value.content();
    if (name == "n") row.n = integer(value);
    if (name == "s") row.s = value.content();
    if (name == "g") row.g = value.content();
    if (name == "ttl") row.ttl = integer(value);
    if (name == "l") {
      row.l.emplace();
      for (item::Elements e(value); e.next();) row.l->push_back(integer(e.value()));
    }
  }
  return row;
}

std::string show(const std::optional<Row>& row) {
  if (!row) return "none";
  std::string out = fmt::format("{}/{}", row->pk, row->sk);
  if (row->n) out += fmt::format(" n={}", *row->n);
  if (row->s) out += fmt::format(" s={}", *row->s);
  if (row->g) out += fmt::format(" g={}", *row->g);
  if (row->l) out += fmt::format(" l=[{}]", fmt::join(*row->l, ","));
  if (row->ttl) out += fmt::format(" ttl={}", *row->ttl);
  return out;
}

bool Condition::holds(const std::optional<Row>& row) const {
  switch (kind) {
    case Kind::none: return true;
    case Kind::absent: return !row;
    case Kind::present: return row.has_value();
    case Kind::n_less: return row && row->n && *row->n < n;
    case Kind::g_is: return row && row->g == g;
  }
  return false;
}

std::string Condition::text() const {
  switch (kind) {
    case Kind::none: break;
    case Kind::absent: return "attribute_not_exists(pk)";
    case Kind::present: return "attribute_exists(pk)";
    case Kind::n_less: return "n < :cn";
    case Kind::g_is: return "g = :cg";
  }
  return {};
}

std::optional<Row> Change::applied(const std::optional<Row>& old) const {
  auto now = old.value_or(Row{.pk = row.pk, .sk = row.sk});
  switch (kind) {
    case Kind::put: return row;
    case Kind::set:
      now.s = text;
      now.g = text;
      now.ttl = ttl;
      return now;
    case Kind::add: now.n = now.n.value_or(0) + n; return now;
    case Kind::append:
      if (!now.l) now.l.emplace();
      now.l->push_back(n);
      return now;
    case Kind::forget:
      if (!old) return std::nullopt;
      now.g.reset();
      now.ttl.reset();
      return now;
    case Kind::remove: return std::nullopt;
    case Kind::check: break;
  }
  return old;
}

std::optional<Row> Model::get(const Key& key) const {
  const auto at = rows_.find(key);
  return at == rows_.end() ? std::nullopt : std::optional(at->second);
}

void Model::replace(const Key& key, std::optional<Row> now, bool by_service) {
  const auto old = get(key);
  if (old == now) return;
  records_[key].push_back({old, now, by_service});
  if (now)
    rows_[key] = *now;
  else
    rows_.erase(key);
}

bool Model::apply(const Change& change) {
  if (!can_apply(change)) return false;
  const auto key = key_of(change.row);
  replace(key, change.applied(get(key)), false);
  return true;
}

void Model::expire(int64_t now) {
  std::vector<Key> due;
  for (const auto& [key, row] : rows_)
    if (row.ttl && *row.ttl <= now) due.push_back(key);
  for (const auto& key : due) replace(key, std::nullopt, true);
}

std::vector<Row> Model::partition(const std::string& pk) const {
  std::vector<Row> rows;
  for (const auto& [key, row] : rows_)
    if (row.pk == pk) rows.push_back(row);
  return rows;
}

std::vector<Row> Model::all() const {
  std::vector<Row> rows;
  for (const auto& [key, row] : rows_) rows.push_back(row);
  return rows;
}

std::vector<Row> Model::in_group(const std::string& g) const {
  std::vector<Row> rows;
  for (const auto& [key, row] : rows_)
    if (row.g == g && row.n) rows.push_back(row);
  std::ranges::sort(rows, {}, [](const Row& row) { return *row.n; });
  return rows;
}

}  // namespace tabella::model
